/** A media type without its parameters, in lower case. */
export function parseMediaType(text: string): string {
  return (text.split(';')[0] ?? '').trim().toLowerCase()
}
