"""The server that measure.py measures: a page that makes a table of rows as JSON, as small services do."""

from fastapi import FastAPI

app = FastAPI()


@app.get("/rows/{count}")
async def rows(count: int):
    return [{"number": number, "name": f"row {number}", "square": number * number} for number in range(count)]
