# keyhole_proof.py
"""Checks proofs of Keyhole's audit entries. Python 3.9 or newer, no packages, no network, no Keyhole.

    python3 keyhole_proof.py FILE --key KEY[,KEY…] [--witness KEY[,KEY…]]

FILE is what `keyhole audit prove` wrote: a proof on each line. KEY is what `keyhole audit key` prints; get it from
somewhere else than FILE. Ends with 0 if every line proves its entry, with 1 if not, and with 2 if it was called wrongly.
"""

import base64
import datetime
import functools
import hashlib
import json
import re
import sys


def check(line, keys, witnesses=()):
    """What a proof shows, as a dict, or raises Wrong with what is wrong.

    `line` is its text or its UTF-8. `keys` and `witnesses` are verifier keys."""
    proof = _read(line)
    parsed = _parse(proof)
    lane, first, last, at, root = parsed["segment"]
    index, tree_path, note = parsed["proof"]
    text, signatures = _parse_note(note)
    size, head = _open_head(text, signatures, [_parse_key(key, 1) for key in keys])
    cosigned = [_cosigned_at(text, signatures, _parse_key(key, 4)) for key in witnesses]
    named, number = proof["receipt"].rsplit(":", 1)
    if named != lane or not number.isdigit() or not first <= int(number) <= last:
        shown = f"{lane}:{first}" + (f"-{last}" if last > first else "")
        raise Wrong(f"its segment has {shown}, and not the entry {proof['receipt']}")
    leaf = _hash(0, parsed["salt"], _canonical(proof["entry"]).encode())
    if not _leads(leaf, int(number) - first, last - first + 1, parsed["path"], root):
        raise Wrong("its entry, salt and path do not lead to the root of its segment")
    if not _leads(_hash(0, proof["segment"].encode()), index, size, tree_path, head):
        raise Wrong("its segment and path do not lead to the root that is signed")
    at = proof["entry"].get("at", at)
    return {"receipt": proof["receipt"], "origin": text.split("\n")[0], "at": at, "entry": proof["entry"],
            "size": size, "cosigned": cosigned}


def _read(line):
    """The JSON of a line. What two languages read differently proves nothing: numbers are whole, as digits alone."""
    try:
        if len(line) > 64 * 1024 * 1024:
            raise ValueError
        text = line if isinstance(line, str) else line.decode()
        return json.loads(text, parse_int=_parse_number, parse_float=_no_number, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Wrong("it is not JSON: a proof is one line") from None


def _parse_number(text):
    return _safe(int(_matched(re.compile(r"\d{1,16}", re.ASCII), text).group()))


def _no_number(text):
    raise ValueError(text)


class Wrong(Exception):
    """What is wrong with a proof, as a clause."""


# The parts of a proof.

RECEIPT = re.compile(r"[A-Za-z0-9_-]{1,64}:[1-9]\d{0,15}(-[1-9]\d{0,15})?", re.ASCII)
SEGMENT = re.compile(
    r"keyhole audit segment v1\n([A-Za-z0-9_-]{1,64})\n([1-9]\d{0,15})-([1-9]\d{0,15})\n(\d{1,16})\n(.{44})\n", re.ASCII)


def _parse(proof):
    if not isinstance(proof, dict):
        raise Wrong("it is no JSON object")
    if proof.get("format") != "keyhole audit proof v1":
        raise Wrong("its format is not `keyhole audit proof v1`")
    if proof.keys() - {"format", "receipt", "entry", "salt", "path", "segment", "proof"}:
        raise Wrong("it has members that no proof has")
    parts = {"receipt": _parse_receipt, "entry": _parse_entry, "salt": _parse_hash, "path": _parse_path,
             "segment": _parse_segment, "proof": _parse_tree_proof}
    parsed = {}
    for name, parse in parts.items():
        try:
            parsed[name] = parse(proof.get(name))
        except (TypeError, ValueError):
            raise Wrong(f"its member `{name}` is malformed or missing") from None
    return parsed


def _parse_receipt(text):
    lane, numbers = _matched(RECEIPT, text).group().rsplit(":", 1)
    first, last = (numbers.split("-") + [None])[:2]
    if last is not None and int(first) >= int(last):
        raise ValueError
    _safe(int(last or first))


def _parse_entry(value, depth=0):
    """Refuses what not every language writes the same: other names than ASCII letters, and deep nesting."""
    inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else []
    names = value if isinstance(value, dict) else []
    if depth == 0 and isinstance(value, dict) and type(value.get("at", 0)) is not int:
        raise ValueError
    if (depth == 0 and not isinstance(value, dict)) or (depth == 16 and isinstance(value, (dict, list))):
        raise ValueError
    for name in names:
        _matched(re.compile("[A-Za-z]+"), name)
    for one in inner:
        _parse_entry(one, depth + 1)


def _parse_path(path):
    if not isinstance(path, list):
        raise ValueError
    return [_parse_hash(one) for one in path]


def _parse_segment(text):
    lane, first, last, at, root = _matched(SEGMENT, text).groups()
    if int(first) > int(last):
        raise ValueError
    return lane, int(first), _safe(int(last)), _safe(int(at)), _parse_hash(root)


def _parse_tree_proof(text):
    """https://c2sp.org/tlog-proof"""
    head, blank, note = text.partition("\n\n") if isinstance(text, str) else ("", "", "")
    lines = head.split("\n")
    if not blank or lines[0] != "c2sp.org/tlog-proof@v1" or len(lines) < 2:
        raise ValueError
    index = _matched(re.compile(r"index (0|[1-9]\d{0,15})", re.ASCII), lines[1]).group(1)
    return int(index), [_parse_hash(one) for one in lines[2:]], note


def _matched(pattern, text):
    found = pattern.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError
    return found


def _safe(number):
    if number >= 2**53:
        raise ValueError
    return number


def _parse_hash(text):
    data = _decode(text) if isinstance(text, str) else b""
    if len(data) != 32:
        raise ValueError
    return data


def _decode(text):
    """Base64, as an encoder spells it."""
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError
    return data


def _canonical(value):
    """JSON in the form of RFC 8785, of texts, null, lists and objects."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


# Trees: RFC 6962, section 2.1.


def _hash(prefix, *parts):
    return hashlib.sha256(bytes([prefix]) + b"".join(parts)).digest()


def _leads(leaf, index, size, path, root):
    """Whether a path leads from a leaf to the root."""
    if index >= size:
        return False
    node, last, rest = leaf, size - 1, list(path)
    while last > 0:
        if index % 2 == 1 or index < last:
            if not rest:
                return False
            other = rest.pop(0)
            node = _hash(1, other, node) if index % 2 == 1 else _hash(1, node, other)
        index, last = index // 2, last // 2
    return not rest and node == root


# Signed notes: https://c2sp.org/signed-note, /tlog-checkpoint and /tlog-cosignature.

NAME = r"([^\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff+]+)"


def _parse_key(text, kind):
    name, number, encoded = _matched(re.compile(NAME + r"\+([0-9a-f]{8})\+(.+)"), text).groups()
    key = _decode(encoded)
    number = bytes.fromhex(number)
    expected = hashlib.sha256(name.encode() + b"\n" + key).digest()[:4]
    if len(key) != 33 or key[0] != kind or number != expected:
        raise ValueError(f"{text} is not a verifier key")
    return name, number, key[1:]


def _parse_note(note):
    end = note.rfind("\n\n") + 1
    signatures = []
    lines = note[end + 1 :].split("\n")
    is_text = not re.search("[\x00-\x09\x0b-\x1f\ud800-\udfff]", note) and len(note.encode()) <= 128 * 1024
    if end > 0 and len(lines) > 1 and lines.pop() == "" and is_text:
        for line in lines:
            try:
                name, encoded = _matched(re.compile("— " + NAME + " (.+)"), line).groups()
                data = _decode(encoded)
            except ValueError:
                break
            if len(data) < 5:
                break
            signatures.append((name, data[:4], data[4:]))
        else:
            return note[:end], signatures
    return "", []


def _by(key, signatures):
    return [data for name, number, data in signatures if (name, number) == key[:2]]


def _open_head(text, signatures, keys):
    found = [(key, data) for key in keys for data in _by(key, signatures)]
    lines = text.split("\n")
    is_head = len(lines) > 3 and lines[-1] == "" and "" not in lines[:-1] and lines[0] in [key[0] for key in keys]
    for name in ("audit.accept-restore ", "audit.commands "):
        said = [line[len(name):] for line in lines[3:] if line.startswith(name)][:1]
        is_head = is_head and all(re.fullmatch(r"[1-9]\d{0,15}", number, re.ASCII) for number in said)
    if found and is_head and all(_is_signed(key[2], text.encode(), data) for key, data in found):
        try:
            size = _matched(re.compile(r"0|[1-9]\d{0,15}", re.ASCII), lines[1]).group()
            return _safe(int(size)), _parse_hash(lines[2])
        except ValueError:
            pass
    raise Wrong("its signed head is not signed by the given key")


def _cosigned_at(text, signatures, key):
    found = _by(key, signatures)
    for data in found:
        time = int.from_bytes(data[:8], "big")
        message = f"cosignature/v1\ntime {time}\n{text}".encode()
        if len(data) != 72 or time >= 8_640_000_000_000 or not _is_signed(key[2], message, data[8:]):
            found = []
            break
    if not found:
        raise Wrong(f"its signed head is not signed by the witness {key[0]}")
    return int.from_bytes(found[0][:8], "big") * 1000


# Ed25519: RFC 8032, section 5.1. A point is x, y, 1 and x times y, each times a common factor.

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BASE = 0x216936D3CD6E53FEC0A4E231FDD6DC5C692CC7609525A7B2C9562D608F25D51A, 4 * pow(5, P - 2, P) % P


@functools.lru_cache(maxsize=64)  # all lines of an export have one signed head
def _is_signed(public_key, message, signature):
    """Whether this is the signature of the message: S times the base is R plus k times the public key."""
    point = _decompress(public_key)
    if point is None or len(signature) != 64:
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % ORDER
    minus = (-point[0] % P, point[1], 1, -point[3] % P)
    x, y, z, _ = _add(_times(s, (*BASE, 1, BASE[0] * BASE[1] % P)), _times(k, minus))
    inverse = pow(z, P - 2, P)
    encoded = y * inverse % P | (x * inverse % P & 1) << 255
    return encoded.to_bytes(32, "little") == signature[:32]


def _decompress(data):
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or x * x % P != square or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def _add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(number, point):
    total = 0, 1, 1, 0
    while number > 0:
        if number & 1:
            total = _add(total, point)
        point, number = _add(point, point), number >> 1
    return total


def _time(at):
    try:
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=at)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return f"{at} ms"


def _list_of(option, text, kind):
    keys = text.split(",")
    if "" in keys or len(set(keys)) < len(keys):
        _misused(f"{option} takes a comma-separated list without empty or repeated members.")
    try:
        for key in keys:
            _parse_key(key, kind)
    except ValueError:
        _misused(f"{option} takes verifier keys" + (" of witnesses." if kind == 4 else "."))
    return keys


def _misused(words):
    print(words, file=sys.stderr)
    sys.exit(2)


def main(arguments):
    options = dict(zip(arguments[1::2], arguments[2::2]))
    if len(arguments) != 1 + 2 * len(options) or not {"--key"} <= options.keys() <= {"--key", "--witness"}:
        _misused(__doc__)
    keys = _list_of("--key", options["--key"], 1)
    witnesses = _list_of("--witness", options["--witness"], 4) if "--witness" in options else []
    if len({key.split("+")[0] for key in keys}) > 1:
        _misused("--key takes keys of one installation.")
    status, found = 0, False
    with open(arguments[0], "rb") as lines:
        for number, line in enumerate(lines, 1):
            found = True
            try:
                proved = check(line, keys, witnesses)
                print(f"Proved: entry {proved['receipt']} of {proved['origin']}, of {_time(proved['at'])}.")
                print(json.dumps(proved["entry"], indent=2))
                for key, at in zip(witnesses, proved["cosigned"]):
                    print(f"Cosigned by {key.split('+')[0]} at {_time(at)}.")
            except Wrong as error:
                print(f"Line {number} proves nothing: {error}.")
                status = 1
    if not found:
        print(f"{arguments[0]} has no proof.")
    return status if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
