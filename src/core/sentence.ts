/** A text that is the end of a sentence, as one of its own. */
export function toSentence(text: string): string {
  return `${capitalize(text)}${text.endsWith('.') ? '' : '.'}`
}

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
