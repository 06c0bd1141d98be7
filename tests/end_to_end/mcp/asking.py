"""An MCP server with one tool, `write`: it notes that it is called, has the client's model say something, and passes that on."""

import json
import sys

notes = sys.argv[1]


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask():
    """Has the model say something."""
    send({"id": "ask-1", "method": "sampling/createMessage", "params": {
        "systemPrompt": "You name animals.", "maxTokens": 100000,
        "messages": [{"role": "user", "content": {"type": "text", "text": "Name one."}}]}})
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get("id") == "ask-1":
            if "error" in answer:
                return "no answer: " + answer["error"]["message"]
            return "it said " + answer["result"]["content"]["text"]


for line in sys.stdin:
    asked = json.loads(line)
    method, key = asked.get("method"), asked.get("id")
    if key is None:
        continue
    if method == "initialize":
        samples = "sampling" in asked["params"]["capabilities"]
        send({"id": key, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                    "serverInfo": {"name": "house", "version": "1"}}})
    elif method == "tools/list":
        tool = {"name": "write", "description": "Writes about an animal.", "inputSchema": {"type": "object"},
                "annotations": {"idempotentHint": True}}
        send({"id": key, "result": {"tools": [tool]}})
    elif method == "tools/call":
        with open(notes, "a") as file:
            file.write("called\n")
        said = ask() if samples else "nobody can be asked"
        send({"id": key, "result": {"content": [{"type": "text", "text": said}]}})
    else:
        send({"id": key, "error": {"code": -32601, "message": "no such method"}})
