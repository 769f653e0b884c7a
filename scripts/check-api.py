"""Makes something of everything in the region that scripts/check-api asks about, and writes the names
down, one list a file, so that questions are about what there is as often as about what there is not."""

import json
import sys
import time
import urllib.error
import urllib.request
import uuid

base, secret, folder = sys.argv[1:]


def ask(path, body=None, method=None, fine=()):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    request = urllib.request.Request(base + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code in fine:
            return json.load(error)
        sys.exit(f"{path}: {error.code} {error.read().decode()}")


def until(path, there, seconds=180):
    for _ in range(seconds):
        answer = ask(path)
        if there(answer):
            return answer
        time.sleep(1)
    sys.exit(f"{path}: nothing after {seconds} s")


solve = ask("/ops/v1/solves", method="POST")["solve"]
moves = until("/ops/v1/moves", lambda answer: answer["moves"])["moves"]
servers = sorted({move["server"] for move in moves})
reservations = sorted({name for move in moves for name in (move["from"], move["to"]) if name})
event = {"event": "checked", "scope": "server", "scope_id": servers[0], "kind": "software",
         "started_at": "2026-01-01T00:00:00Z"}
ask("/ops/v1/events", event)
month_ahead = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 30 * 86400))
window = {"scope": "server", "scope_id": servers[0], "length_seconds": 3600, "drain_seconds": 86400,
          "starts_at": month_ahead, "why": "a check"}
maintenance = ask("/ops/v1/maintenance", window)["plan"]
emergency = str(uuid.uuid4())
needs = {"emergency": emergency, "reservation": reservations[0], "rru": 1, "why": "a check", "max_servers": 9}
# Refused or granted, it is there.
ask("/ops/v1/emergencies?wait=5", needs, fine=(409,))

hardware = ask(f"/ops/v1/servers/{servers[0]}")["hardware_type"]
wanted = {"reservation": "checked", "owner": "checkers", "capacity_rru": 1, "rru": {hardware: 1}}
request = ask("/v1/reservations", wanted)
plan = ask("/v1/plans", {"changes": [wanted | {"reservation": "planned"}]})["plan"]

until(f"/ops/v1/solves/{solve}", lambda answer: answer["state"] not in ("requested", "running"))
files = ask(f"/ops/v1/solves/{solve}/files")["files"]
lists = {
    "servers": servers, "reservations": reservations, "solves": [solve], "maintenance": [maintenance],
    "emergencies": [emergency], "requests": [request["request"]], "plans": [plan],
    "operations": [request["operation"]], "parts": ["snapshot", "result"],
    "files": [file["name"] for file in files] or ["none"],
    "subjects": servers + reservations + ["checked", "mover"],
}
for name, values in lists.items():
    with open(f"{folder}/{name}", "w", encoding="utf-8") as out:
        out.write("".join(f'"{value}"\n' for value in values))
