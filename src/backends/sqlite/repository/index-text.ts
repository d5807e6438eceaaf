import { hash } from 'node:crypto'

const LONGEST = 400

/**
 * A text as the index stores and finds it: a long one by its beginning and its hash. SQLite reads a whole key to compare
 * it, so that one long key would slow down every search that comes near it. Only a text that is stored by its hash has
 * `LONGEST` characters: no other text has the same key. Its first `HIERARCHY_CHARACTERS` are those of the text.
 */
export function indexText(text: string): string {
  if (text.length < LONGEST) return text
  const digest = hash('sha256', text)
  return text.slice(0, LONGEST - digest.length) + digest
}
