/** A line of text, or why there is none. Blank lines are left out, but counted. */
export type Line =
  | { readonly kind: 'text'; readonly number: number; readonly bytes: Buffer }
  | { readonly kind: 'too-long'; readonly number: number }

const newline = 0x0a

/** Splits bytes into lines. Of a line beyond the limit nothing is kept but its number. */
export async function* linesOf(source: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Line> {
  let parts: Buffer[] = []
  let length = 0
  let number = 1
  const take = (part: Buffer) => {
    length += part.length
    if (length <= limit) parts.push(part)
    else parts = []
  }
  const line = (): Line | undefined => {
    const whole = length > limit ? undefined : parts.length === 1 ? parts[0] : Buffer.concat(parts)
    if (whole === undefined) return length > limit ? { kind: 'too-long', number } : undefined
    return isBlank(whole) ? undefined : { kind: 'text', number, bytes: whole }
  }
  for await (const chunk of source) {
    let from = 0
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
      take(chunk.subarray(from, at))
      const complete = line()
      if (complete !== undefined) yield complete
      parts = []
      length = 0
      number++
      from = at + 1
    }
    take(chunk.subarray(from))
  }
  const last = line()
  if (last !== undefined) yield last
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every(byte => byte === 0x20 || byte === 0x0d || byte === 0x09)
}
