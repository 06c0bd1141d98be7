"""A server for tests on the `mcp` package: on standard input and output, or by HTTP on the port that is given."""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("packaged")


class Colour(BaseModel):
    colour: str


async def which() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
async def paint(thing: str, colour: Annotated[Colour, Resolve(which)]) -> str:
    """Paints a thing in the colour that a person chooses."""
    return f"{thing}: {colour.colour}"


@server.tool()
async def climb(steps: int, ctx: Context) -> str:
    """Tells of each step."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return f"{steps} steps"


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run()
