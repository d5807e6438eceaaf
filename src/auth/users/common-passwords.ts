import { readFileSync } from 'node:fs'

/** Read at the first use: few processes ever set a password. */
let known: ReadonlySet<string> | undefined

function load(): ReadonlySet<string> {
  const lines = readFileSync(new URL('./common-passwords.txt', import.meta.url), 'utf8').split('\n')
  return new Set(lines.filter(line => line !== '' && !line.startsWith('# ')))
}

/** Digits and signs that people add to a word: `Password1!` is as common as `password`. */
const ADDED = /[^\p{L}]{1,5}$/u

/** Whether a password is one that attackers try first, whatever its case and the digits and signs at its end. */
export function isCommonPassword(password: string): boolean {
  known ??= load()
  const text = password.toLowerCase()
  return known.has(text) || known.has(text.replace(ADDED, ''))
}
