/** A media type without its parameters, in lower case. */
export function mediaType(text: string): string {
  return (text.split(';')[0] ?? '').trim().toLowerCase()
}
