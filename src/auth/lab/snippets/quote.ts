/** A string, or a list of strings, of JavaScript or Python, which may stand in a script element too. */
export function quote(value: string | readonly string[]): string {
  const text =
    typeof value === 'string'
      ? JSON.stringify(value)
      : `[${value.map(one => JSON.stringify(one)).join(', ')}]`
  return text.replaceAll('<', '\\u003c')
}
