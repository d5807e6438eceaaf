/** A string of JavaScript or Python, which may stand in a script element too. */
export function quote(text: string): string {
  return JSON.stringify(text).replaceAll('<', '\\u003c')
}
