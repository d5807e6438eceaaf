/**
 * Splits a search value at a separator that is not escaped (R4 search.html#escaping). The parts keep their escapes,
 * so that they can be split again by another separator; `unescaped` ends it.
 */
export function split(text: string, separator: ',' | '|' | '$'): readonly string[] {
  const parts: string[] = []
  let start = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === separator) {
      parts.push(text.slice(start, at))
      start = at + 1
    }
  }
  parts.push(text.slice(start))
  return parts
}

/** `\,`, `\|`, `\$` and `\\` stand for the second character; any other backslash for itself. */
export function unescaped(text: string): string {
  return text.replace(/\\([,|$\\])/g, '$1')
}

/** Escapes a text, so that it is searched for as it is: `Smith, John` becomes `Smith\, John`. */
export function escapeSearchValue(text: string): string {
  return text.replace(/[,|$\\]/g, '\\$&')
}
