/** Letters and digits with separators between them. */
const NUMBER = /^[\p{L}\p{N}]+(?:[\s./_–-]+[\p{L}\p{N}]+){0,3}$/u

export function hasDigit(text: string): boolean {
  return /\d/.test(text)
}

/** Whether a text may be an MRN or a part of one, with spaces or other separators. */
export function hasNumber(text: string): boolean {
  return hasDigit(text) && NUMBER.test(text)
}

/** More groups of letters and digits are no number that somebody spells in another way. */
const MAX_GROUPS = 4

/** The usual spellings of a number: `syn 004127` is `SYN-004127`, `SYN004127` or `SYN 004127` in a record. */
export function listSpellings(number: string): readonly string[] {
  if (!hasNumber(number)) return [number]
  const words = number.match(/[\p{L}\p{N}]+/gu) ?? []
  const groups = number.match(/\p{L}+|\p{N}+/gu) ?? []
  const divisions = groups.length > MAX_GROUPS ? [words] : [words, groups]
  const joined = divisions.flatMap(parts => ['-', '', ' '].map(separator => parts.join(separator)))
  return [...new Set([number, ...joined].flatMap(spelling => [spelling, spelling.toUpperCase()]))]
}

/** Completes a number to one of the same form as an example: `4127` or `syn 4127` to `SYN-004127`. */
export function completeNumber(part: string, example: string | undefined): string | undefined {
  const [, prefix, number = ''] = /^(.*?)(?<!\d)(\d+)$/.exec(example ?? '') ?? []
  if (prefix === undefined) return undefined
  const typed = simplify(part)
  const begin = simplify(prefix)
  const digits = /^\d+$/.test(typed) || !typed.startsWith(begin) ? typed : typed.slice(begin.length)
  return /^\d+$/.test(digits) && digits.length <= number.length
    ? prefix + digits.padStart(number.length, '0')
    : undefined
}

/** Letters and digits only, without case. */
function simplify(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}
