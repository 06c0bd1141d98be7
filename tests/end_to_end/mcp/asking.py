"""An MCP server with two tools, which note that they are called: `write` asks the client's model and tells what became of it,
`book` asks a person for how many, and passes that on."""

import json
import sys

notes = sys.argv[1]


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


class Withdrawn(Exception):
    """Nobody waits for the call any more."""


def answer_to(key):
    """What the client answers to a question."""
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get("method") == "notifications/cancelled":
            raise Withdrawn
        if answer.get("id") == key:
            return answer


def book():
    """Has a person say for how many."""
    send({"id": "person-1", "method": "elicitation/create", "params": {
        "mode": "form", "message": "For how many is the table?", "requestedSchema": {
            "type": "object", "required": ["guests"],
            "properties": {"guests": {"type": "integer", "minimum": 1, "description": "With yourself."}}}}})
    result = answer_to("person-1")["result"]
    if result["action"] == "accept":
        return "booked for %d" % result["content"]["guests"]
    return "not booked: " + result["action"]


def ask():
    """Has the model say something."""
    send({"id": "ask-1", "method": "sampling/createMessage", "params": {
        "systemPrompt": "You name animals.", "maxTokens": 100000,
        "messages": [{"role": "user", "content": {"type": "text", "text": "Name one."}}]}})
    answer = answer_to("ask-1")
    if "error" in answer:
        return "no answer: %d" % answer["error"]["code"]
    return "it said " + answer["result"]["content"]["text"]


for line in sys.stdin:
    asked = json.loads(line)
    method, key = asked.get("method"), asked.get("id")
    if key is None:
        continue
    if method == "initialize":
        able = asked["params"]["capabilities"]
        send({"id": key, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                    "serverInfo": {"name": "house", "version": "1"}}})
    elif method == "tools/list":
        write = {"name": "write", "description": "Writes about an animal.", "inputSchema": {"type": "object"},
                 "annotations": {"idempotentHint": True}}
        table = {"name": "book", "description": "Books a table.", "inputSchema": {"type": "object"}}
        send({"id": key, "result": {"tools": [write, table]}})
    elif method == "tools/call":
        with open(notes, "a") as file:
            file.write("called\n")
        try:
            if asked["params"]["name"] == "write":
                said = ("" if "sampling" in able else "not announced; ") + ask()
            else:
                said = book() if "elicitation" in able else "nobody can be asked"
        except Withdrawn:
            continue
        send({"id": key, "result": {"content": [{"type": "text", "text": said}]}})
    else:
        send({"id": key, "error": {"code": -32601, "message": "no such method"}})
