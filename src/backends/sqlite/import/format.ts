/** How a file is laid out: a resource a line, or one JSON document. */
export type Format =
  | { readonly kind: 'lines' }
  | { readonly kind: 'document' }
  | { readonly kind: 'empty' }
  | { readonly kind: 'foreign'; readonly reason: string }

/** Bytes that are looked at to tell. */
export const peekBytes = 64 * 1024

/** Tells the layout by name and first bytes: `.json` files often hold a resource a line, too. */
export function formatOf(label: string, start: Buffer): Format {
  const first = start.find(byte => !isSpace(byte))
  if (first === undefined) return { kind: 'empty' }
  if (start.subarray(0, 2).toString('latin1') === 'PK')
    return { kind: 'foreign', reason: 'It is a zip archive: unpack it first' }
  if (start.includes(0)) return { kind: 'foreign', reason: 'It is not JSON text' }
  if (/\.(ndjson|jsonl)(\.gz)?$/i.test(label)) return { kind: 'lines' }
  if (first !== 0x7b && first !== 0x5b) return { kind: 'foreign', reason: 'It is not JSON text' }
  return { kind: isDocument(start) ? 'document' : 'lines' }
}

/** A document goes on after the first line end, or is a Bundle too long to be seen whole. */
function isDocument(start: Buffer): boolean {
  const text = start.toString('latin1')
  const end = text.search(/\S/) === -1 ? -1 : text.indexOf('\n', text.search(/\S/))
  const firstLine = end === -1 ? text : text.slice(0, end)
  if (isWholeJson(firstLine)) return text.trimStart().startsWith('[')
  return (
    end !== -1 || /"resourceType"\s*:\s*"Bundle"/.test(firstLine) || firstLine.trimStart().startsWith('[')
  )
}

function isWholeJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
