/** The header that names the preference that the server applies. */
export const appliedHeader = "Preference-Applied";

/**
 * The seconds of the first preference `wait` (RFC 7240), from 1 to 60. A preference of another form or size is as if it
 * were not there.
 */
export function parseWait(prefer: string | null): number | undefined {
  // A quoted string may hold a comma. One that does not end spoils the header.
  const preferences = prefer?.match(/(?:[^",]|"(?:[^"\\]|\\.)*(?:"|$))+/g) ?? [];
  const wait = preferences.map((one) => one.trim()).find((one) => /^wait(?![!#$%&'*+.^`|~\w-])/i.test(one));
  const seconds = /^wait[\t ]*=[\t ]*(?:(\d{1,9})|"(\d{1,9})")[\t ]*(?:;|$)/i.exec(wait ?? "");
  const count = Number(seconds?.[1] ?? seconds?.[2]);
  return count >= 1 && count <= waitSecondsMax ? count : undefined;
}

const waitSecondsMax = 60;
