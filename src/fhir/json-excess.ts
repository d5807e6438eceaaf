import { JSON_DEPTH, JSON_VALUES } from './limits.ts'

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d]

/**
 * Says why a JSON text is too costly to parse and walk, or undefined when it is not. One pass without recursion, before
 * the text is parsed: parsed values nested 100,000 levels deep overflow the stack of whatever walks them.
 */
export function findJsonExcess(text: string, mostValues = JSON_VALUES): string | undefined {
  let depth = 0
  let values = 1
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at)
        break
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        depth++
        values++
        if (depth > JSON_DEPTH) return `its JSON is nested more than ${JSON_DEPTH} levels deep`
        break
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        depth--
        break
      case COMMA:
        values++
        break
    }
    if (values > mostValues) return `its JSON has more than ${mostValues} values`
  }
  return undefined
}

/** The index of the quotation mark that ends the string; the length of the text when none does. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}
