"""An authorization server and the MCP server that it guards, on the loopback. Says its address on the first line."""

import base64
import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlparse

challenges = {}


class Server(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def tell(self, status, body=None, **headers):
        text = json.dumps(body or {}).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        path, query = urlparse(self.path).path, parse_qs(urlparse(self.path).query)
        if path.startswith("/.well-known/oauth-protected-resource"):
            return self.tell(200, {"resource": base + "/mcp", "authorization_servers": [base]})
        if path == "/.well-known/oauth-authorization-server":
            return self.tell(200, {
                "issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
                "registration_endpoint": base + "/register", "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"]})
        if path == "/authorize":
            assert query["code_challenge_method"] == ["S256"]
            challenges["code-1"] = query["code_challenge"][0]
            back = query["redirect_uri"][0] + "?" + urlencode({"code": "code-1", "state": query["state"][0]})
            return self.tell(302, Location=back)
        return self.tell(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/register":
            uris = json.loads(body)["redirect_uris"]
            return self.tell(201, {"client_id": "muster-1", "redirect_uris": uris})
        if self.path == "/token":
            asked = parse_qs(body.decode())
            hashed = hashlib.sha256(asked["code_verifier"][0].encode()).digest()
            challenge = base64.urlsafe_b64encode(hashed).decode().rstrip("=")
            if challenges.pop(asked["code"][0], None) != challenge:
                return self.tell(400, {"error": "invalid_grant"})
            return self.tell(200, {"access_token": "first", "token_type": "Bearer", "expires_in": 3600,
                                   "refresh_token": "again"})
        metadata = 'Bearer resource_metadata="%s/.well-known/oauth-protected-resource"' % base
        return self.tell(401, WWW_Authenticate=metadata)


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
base = "http://127.0.0.1:%d" % server.server_port
print(base, flush=True)
server.serve_forever()
