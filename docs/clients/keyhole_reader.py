# keyhole_reader.py
"""Reads a Keyhole database without Keyhole. Python 3.9 or newer, no packages; keyhole_proof.py must be beside it.

    python3 keyhole_reader.py DATABASE ROOT_KEY verify
    python3 keyhole_reader.py DATABASE ROOT_KEY values ORGANIZATION/PROJECT ENVIRONMENT
    python3 keyhole_reader.py DATABASE ROOT_KEY reads

DATABASE is a copy of keyhole.db, or what `pg_dump` wrote as plain SQL. ROOT_KEY is the file of the root key. `verify`
names what was not written with that key, and ends with 1 if something was not. `values` prints variables, accounts and
files as JSON: mind who sees them. `reads` prints who read what, a line of JSON each. The layouts are those of
formats.md. AES is written out here, and slow: a MiB takes some five seconds.
"""

import base64
import datetime
import hashlib
import hmac
import json
import re
import sqlite3
import struct
import sys

from keyhole_proof import BASE, P, Wrong, _canonical, _hash, _open_head, _parse_note, _times


class Damaged(Exception):
    """What was not written by Keyhole with this root key, as a sentence."""


# Tables: a list of dicts for each, by the names of its columns.


def read_tables(path):
    with open(path, "rb") as file:
        is_sqlite = file.read(16) == b"SQLite format 3\0"
    return _read_sqlite(path) if is_sqlite else _read_dump(path)


def _read_sqlite(path):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    names = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
    return {name: [dict(row) for row in database.execute(f'select * from "{name}"')] for name in names}


BYTES = {"digest", "grant_seal", "hashes", "listing_mac", "mac", "public_key", "root", "seal", "sealed", "wrapped"}
NUMBERS = {"at", "environments", "expires_at", "first_seq", "generation", "last_seq", "leaf", "resources", "seq", "size",
           "surfaces", "version"}


def _read_dump(path):
    """The COPY blocks of a dump. Months of the audit are tables of their own there."""
    tables, columns, rows = {}, None, []
    with open(path, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            line = line[:-1]
            start = re.fullmatch(r"COPY (?:\w+\.)?(\w+) \((.*)\) FROM stdin;", line)
            if start:
                name = re.sub(r"^(audit_segments)_.*", r"\1", start.group(1))
                columns, rows = start.group(2).replace('"', "").split(", "), tables.setdefault(name, [])
            elif line == "\\.":
                columns = None
            elif columns:
                rows.append({name: _field(name, text) for name, text in zip(columns, line.split("\t"))})
    return tables


def _field(name, text):
    if text == "\\N":
        return None
    escapes = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
    text = re.sub(r"\\(.)", lambda found: escapes.get(found.group(1), found.group(1)), text, flags=re.DOTALL)
    if name in BYTES:
        return bytes.fromhex(text[2:])
    return int(text) if name in NUMBERS else text


# Keys.


def open_keys(tables, root_keys):
    """The system keys and the notary's seeds by purpose, and what opens the data key of a project and generation."""
    wrap = {_derive(key, "root id")[:8].hex(): _derive(key, "wrap key") for key in root_keys}

    def unwrap(row, *belongs):
        if row["root_id"] not in wrap:
            raise Damaged(f"The root key {row['root_id']} is needed; given are {', '.join(wrap)}.")
        return open_envelope(wrap[row["root_id"]], fields(*belongs, row["root_id"]), row["wrapped"])

    signers = [{"purpose": f"notary {row['generation']}", **row} for row in tables["audit_signers"]]
    rows = tables["system_keys"] + signers
    system = {row["purpose"]: unwrap(row, "system key", row["purpose"]) for row in rows}
    keys = {(row["project_id"], row["generation"]): row for row in tables["data_keys"]}
    return system, lambda project, generation: unwrap(keys[project, generation], "data key", project, generation)


def _derive(key, label):
    """HKDF-SHA-256 without salt, 32 bytes: RFC 5869."""
    extracted = hmac.digest(bytes(32), key, "sha256")
    return hmac.digest(extracted, fields(f"keyhole 1 {label}") + b"\x01", "sha256")


def fields(*values):
    """Each value with its length before it."""
    parts = []
    for value in values:
        data = value.encode() if isinstance(value, str) else value
        data = struct.pack(">Q", value) if isinstance(value, int) else data
        parts.append(struct.pack(">I", len(data)) + data)
    return b"".join(parts)


def mac_of(key, *values):
    """HMAC over a list as JSON."""
    return hmac.digest(key, _json(list(values)), "sha256")


def _json(value):
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text).encode()


# Envelopes: AES-256-GCM, SP 800-38D.


def open_envelope(key, associated, sealed):
    nonce, text, tag = sealed[6:18], sealed[18:-16], sealed[-16:]
    if sealed[:2] != b"\1\1" or len(sealed) < 34:
        raise Damaged("An envelope is too short, or of another version or suite.")
    cipher = _Aes(key)
    start = nonce + b"\0\0\0\1"
    associated = sealed[:6] + associated
    if not hmac.compare_digest(_xor(cipher.encrypt(start), _ghash(cipher.encrypt(bytes(16)), associated, text)), tag):
        raise Damaged("A sealed value does not open.")
    opened = bytearray()
    for at in range(0, len(text), 16):
        counter = nonce + struct.pack(">I", 2 + at // 16)
        opened += _xor(text[at : at + 16], cipher.encrypt(counter))
    return bytes(opened)


def _xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def _ghash(key, associated, text):
    h, total = int.from_bytes(key, "big"), 0
    lengths = struct.pack(">QQ", len(associated) * 8, len(text) * 8)
    padded = b"".join(part + bytes(-len(part) % 16) for part in (associated, text)) + lengths
    for at in range(0, len(padded), 16):
        factor, total, product = total ^ int.from_bytes(padded[at : at + 16], "big"), h, 0
        for bit in range(127, -1, -1):
            if factor >> bit & 1:
                product ^= total
            total = total >> 1 ^ (0xE1 << 120 if total & 1 else 0)
        total = product
    return total.to_bytes(16, "big")


def _boxes():
    box, p, q = [0] * 256, 1, 1
    while True:
        p ^= (p << 1 & 0xFF) ^ (0x1B if p & 0x80 else 0)
        for shift in (1, 2, 4):
            q ^= q << shift & 0xFF
        q ^= 0x09 if q & 0x80 else 0
        turned = q
        for shift in (1, 2, 3, 4):
            turned ^= (q << shift | q >> 8 - shift) & 0xFF
        box[p] = turned ^ 0x63
        if p == 1:
            box[0] = 0x63
            return box


_BOX = _boxes()
_TWICE = [x << 1 & 0xFF ^ (0x1B if x & 0x80 else 0) for x in range(256)]


class _Aes:
    """AES-256, FIPS 197, in one direction."""

    def __init__(self, key):
        words, power = [list(key[at : at + 4]) for at in range(0, 32, 4)], 1
        for at in range(8, 60):
            word = words[-1]
            if at % 8 == 0:
                word = [_BOX[x] for x in word[1:] + word[:1]]
                word[0] ^= power
                power = _TWICE[power]
            elif at % 8 == 4:
                word = [_BOX[x] for x in word]
            words.append([a ^ b for a, b in zip(words[-8], word)])
        self._rounds = [sum(words[at : at + 4], []) for at in range(0, 60, 4)]

    def encrypt(self, block):
        state = [a ^ b for a, b in zip(block, self._rounds[0])]
        for number, key in enumerate(self._rounds[1:], 1):
            state = [_BOX[state[(at + at % 4 * 4) % 16]] for at in range(16)]
            if number < 14:
                state = [value for at in range(0, 16, 4) for value in _mix(state[at : at + 4])]
            state = [a ^ b for a, b in zip(state, key)]
        return bytes(state)


def _mix(column):
    every = column[0] ^ column[1] ^ column[2] ^ column[3]
    return [x ^ every ^ _TWICE[x ^ column[(at + 1) % 4]] for at, x in enumerate(column)]


# Sets and files.


def verify_set(system, project, row):
    identity = (project["organization_id"], project["id"], project["slug"], row["kind"], row["environment"], row["version"])
    covered = fields("listing", *identity, row["generation"], row["listing"])
    if not hmac.compare_digest(hmac.digest(system["listing"], covered, "sha256"), row["listing_mac"]):
        raise Damaged(f"The {row['kind']} of {project['slug']} in {row['environment']} were not written by Keyhole.")
    return fields("set", *identity, row["listing_mac"])


def open_set(system, data_key, project, row):
    """The items of a set, as JSON."""
    associated = verify_set(system, project, row)
    if row["sealed"] is None:
        return json.loads(row["listing"])
    key = _derive(data_key(project["id"], row["generation"]), f"{row['kind']} subkey")
    opened = open_envelope(key, associated, row["sealed"])
    (count,) = struct.unpack_from(">I", opened)
    return json.loads(b"[" + opened[4 + 4 * count :] + b"]")


def open_content(data_key, project, entry, content):
    """The bytes of a file. `entry` is the file's in its listing."""
    key = _derive(data_key(project["id"], content["generation"]), "file subkey")
    belongs = fields("file content", project["id"], entry["id"], entry["size"], entry["sha256"])
    return open_envelope(key, belongs, content["sealed"])


# The audit.


def lanes(tables):
    """The segments of each lane, in their order."""
    found = {}
    for row in sorted(tables["audit_segments"], key=lambda row: (row["lane"], row["first_seq"], row["at"])):
        found.setdefault(row["lane"], []).append(row)
    return found


def segment_mac(audit_key, previous, row):
    length = len(row["texts"].encode("utf-16-le")) // 2
    head = ["keyhole audit v1", previous.hex(), row["lane"], row["first_seq"], row["last_seq"], row["at"], length]
    return hmac.digest(audit_key, _json(head) + row["texts"].encode() + row["entries"].encode(), "sha256")


def entries(row):
    """The entries of a segment, as a proof has them."""
    texts, stored = json.loads(row["texts"]), json.loads(row["entries"])
    lists = stored["names"]
    return [_entry(texts, lists, one + [None] * (19 - len(one))) for one in stored["entries"]]


def _entry(texts, lists, row):
    kind, who, org_id, org, project_id, project, environment, action, address, agent, names, request = row[:12]
    added, changed, deleted, more, version, by_name, canaries = row[12:]
    said = None if more is None else json.loads(texts[more])
    actor = {"type": texts[kind], "name" if texts[kind] == "person" else "id": texts[who]}
    if texts[kind] == "person":
        actor["from"] = "os" if said is None else said
    entry = {
        "actor": actor, "organizationId": texts[org_id], "organization": texts[org], "projectId": texts[project_id],
        "project": texts[project], "environment": None if environment is None else texts[environment],
        "action": texts[action], "names": lists[names], "requestId": request, "clientAddress": texts[address],
        "userAgent": texts[agent],
    }
    if added is not None:
        entry["write"] = {"added": lists[added], "changed": lists[changed], "deleted": lists[deleted]}
    if version is not None:
        entry["version"] = version
    if by_name == 1:
        entry["byName"] = True
    if canaries is not None:
        entry["canaries"] = lists[canaries]
    if said is not None and texts[kind] == "trust":
        entry["token"] = said
    return entry


def leaf_of(salt_key, rows):
    """The leaf of segments that follow each other, hashed."""
    hashes = []
    for row in rows:
        for at, entry in enumerate(entries(row)):
            salt = mac_of(salt_key, "keyhole audit salt v1", row["lane"], row["first_seq"] + at)
            hashes.append(_hash(0, salt, _canonical(dict(entry, at=row["at"])).encode()))
    root = base64.b64encode(root_of(hashes)).decode()
    lane, numbers, at = rows[0]["lane"], f"{rows[0]['first_seq']}-{rows[-1]['last_seq']}", rows[-1]["at"]
    return _hash(0, f"keyhole audit segment v1\n{lane}\n{numbers}\n{at}\n{root}\n".encode())


def root_of(hashes):
    """The Merkle tree hash of RFC 6962, section 2.1, over leaves that are hashed already."""
    while len(hashes) > 1:
        pairs = [_hash(1, *hashes[at : at + 2]) for at in range(0, len(hashes) - 1, 2)]
        hashes = pairs + hashes[len(pairs) * 2 :]
    return hashes[0] if hashes else hashlib.sha256().digest()


def verify(tables, system, data_key):
    """A sentence for each thing that was not written with this root key, or is missing."""
    yield from _verify_rows(tables, system, data_key)
    yield from _verify_chains(tables, system["audit"])
    yield from _verify_tree(tables, system)


def _verify_rows(tables, system, data_key):
    for row in tables["organizations"]:
        if mac_of(system["grant"], "keyhole organization v1", row["id"], row["slug"]) != row["seal"]:
            yield f"The row of the organization {row['slug']} was changed."
    columns = ("organization_id", "surfaces", "resources", "environments", "projects", "expires_at", "trust")
    for row in tables["api_keys"]:
        rest = [row[name] for name in columns]
        seals = [mac_of(system["grant"], f"keyhole {kind} v1", row["id"], row["digest"].hex(), *rest)
                 for kind in ("grant", "canary")]
        if row["grant_seal"] not in seals:
            yield f"The row of the key {row['id']} was changed."
    for row in tables["rosters"]:
        if mac_of(system["grant"], "keyhole roster v1", row["id"], row["version"], row["listing"]) != row["mac"]:
            yield f"Version {row['version']} of the roster was changed."
    contents = {row["id"]: row for row in tables["file_contents"]}
    projects = {row["id"]: row for row in tables["projects"]}
    for row in tables["sets"]:
        try:
            project = projects[row["project_id"]]
            for item in open_set(system, data_key, project, row):
                if row["kind"] == "files":
                    open_content(data_key, project, item, contents[item["id"]])
        except (Damaged, KeyError) as error:
            yield f"{error}"


def _verify_chains(tables, audit_key):
    dropped = {row["lane"]: row for row in tables["audit_checkpoints"]}
    for lane, row in dropped.items():
        if mac_of(audit_key, "keyhole audit dropped v1", lane, row["seq"], row["mac"].hex()) != row["seal"]:
            yield f"{lane}: what retention dropped was changed."
    ends = {}
    for lane, rows in lanes(tables).items():
        start = dropped.get(lane, {"seq": 0, "mac": b""})
        last, mac = start["seq"], start["mac"]
        for row in rows:
            if row["first_seq"] != last + 1 or segment_mac(audit_key, mac, row) != row["mac"]:
                yield f"{lane}: the chain breaks at entry {row['first_seq']}."
            last, mac = row["last_seq"], row["mac"]
        ends[lane] = mac
    for row in tables["audit_heads"]:
        seal = mac_of(audit_key, "keyhole audit head v1", row["lane"], row["seq"], row["at"], row["mac"].hex(), row["roster"])
        if seal != row["seal"] or ends.get(row["lane"], b"") != row["mac"]:
            yield f"{row['lane']}: its end was changed."


def _verify_tree(tables, system):
    """Each leaf is that of its segments, and each head is signed over the first leaves."""
    salt_key = _derive(system["audit"], "salt key")
    signed = {head["size"]: head["note"] for head in tables["audit_checkpoints_signed"]}
    origin = f"keyhole/{_derive(system['audit'], 'installation id')[:8].hex()}"
    keys = [_verifier(origin, seed) for purpose, seed in system.items() if purpose.startswith("notary ")]
    peaks = []
    segments = lanes(tables)
    dropped = {row["lane"]: row["seq"] for row in tables["audit_checkpoints"]}
    leaves = sorted(tables["audit_leaves"], key=lambda row: row["leaf"])
    for number, leaf in enumerate(leaves):
        lane, first, last = leaf["lane"], leaf["first_seq"], leaf["last_seq"]
        rows = [row for row in segments.get(lane, []) if first <= row["first_seq"] <= last]
        if leaf["leaf"] != number:
            yield f"Leaf {number} is missing."
            return
        if last > dropped.get(lane, 0) and sum(row["last_seq"] - row["first_seq"] + 1 for row in rows) < last - first + 1:
            yield f"{lane}:{first}-{last} is in the tree and not in the audit."
        elif rows and leaf_of(salt_key, rows) != leaf["hashes"][:32]:
            yield f"{lane}:{first}-{last} is not what the tree has."
        peaks.append(leaf["hashes"][:32])
        for _ in range((~number & number + 1).bit_length() - 1):
            peaks[-2:] = [_hash(1, *peaks[-2:])]
        note = signed.pop(number + 1, None)
        if note is not None and not _is_head(note, keys, number + 1, peaks):
            yield f"The head of {number + 1} leaves is not signed over this tree."
    yield from (f"The head of {size} leaves is of a tree that is not there." for size in signed)


def _is_head(note, keys, size, peaks):
    root = peaks[-1]
    for left in peaks[-2::-1]:
        root = _hash(1, left, root)
    try:
        return _open_head(*_parse_note(note), keys) == (size, root)
    except Wrong:
        return False


def _verifier(name, seed):
    """The name, id and public key of what signs with a seed: RFC 8032, section 5.1.5."""
    number = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little") & (1 << 254) - 8 | 1 << 254
    x, y, z, _ = _times(number, (*BASE, 1, BASE[0] * BASE[1] % P))
    x, y = x * pow(z, P - 2, P) % P, y * pow(z, P - 2, P) % P
    key = (y | (x & 1) << 255).to_bytes(32, "little")
    return name, hashlib.sha256(name.encode() + b"\n\x01" + key).digest()[:4], key


def main(arguments):
    if len(arguments) < 3 or arguments[2] not in ("verify", "values", "reads"):
        sys.exit(__doc__)
    tables = read_tables(arguments[0])
    with open(arguments[1], encoding="ascii") as file:
        root_keys = [base64.b64decode(text, validate=True) for text in re.split(r"[,\s]+", file.read().strip())]
    try:
        system, data_key = open_keys(tables, root_keys)
        return {"verify": _print_flaws, "values": _print_values, "reads": _print_reads}[arguments[2]](
            tables, system, data_key, *arguments[3:])
    except Damaged as error:
        sys.exit(str(error))


def _print_flaws(tables, system, data_key):
    flaws = list(verify(tables, system, data_key))
    segments, leaves = len(tables["audit_segments"]), len(tables["audit_leaves"])
    print("\n".join(flaws) if flaws else f"Everything is as Keyhole wrote it: {segments} segments, {leaves} in the tree.")
    return 1 if flaws else 0


def _print_values(tables, system, data_key, where, environment):
    slugs = {row["id"]: row["slug"] for row in tables["organizations"]}
    found = [row for row in tables["projects"] if f"{slugs[row['organization_id']]}/{row['slug']}" == where]
    if not found:
        sys.exit(f"There is no project {where}.")
    contents = {row["id"]: row for row in tables["file_contents"]}
    shown = {}
    for row in tables["sets"]:
        if (row["project_id"], row["environment"]) != (found[0]["id"], environment):
            continue
        shown[row["kind"]] = open_set(system, data_key, found[0], row)
        for item in shown[row["kind"]] if row["kind"] == "files" else []:
            item["content"] = base64.b64encode(open_content(data_key, found[0], item, contents[item["id"]])).decode()
    print(json.dumps(shown, indent=2))
    return 0


def _print_reads(tables, *_):
    for row in sorted(tables["audit_segments"], key=lambda row: row["at"]):
        for number, entry in enumerate(entries(row), row["first_seq"]):
            time = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=row["at"])
            print(json.dumps({"entry": f"{row['lane']}:{number}", "time": f"{time.isoformat(timespec='seconds')}Z", **entry}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
