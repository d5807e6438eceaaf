import { readOwnFile } from '../../core/index.ts'

/** Read at the first use: few processes ever set a password. */
let known: ReadonlySet<string> | undefined

function load(): ReadonlySet<string> {
  const lines = readOwnFile('src/auth/users/common-passwords.txt').split('\n')
  return new Set(lines.filter(line => line !== '' && !line.startsWith('# ')))
}

/** The words of common passwords, without the digits and signs around them: `summer` of `summer99`. */
let words: ReadonlySet<string> | undefined

/** Words that are common with a year, and too short for the list. */
const MORE_WORDS =
  'spring summer autumn winter january february march april june july august september october november december monday tuesday wednesday thursday friday saturday sunday hospital clinic doctor nurse patient medical welcome password'

function loadWords(passwords: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...[...passwords].map(strip), ...MORE_WORDS.split(' ')].filter(word => word.length >= 5))
}

/** Digits and signs that people add to a word: `Summer2026!` is as common as `summer`. */
const ADDED = /^[^\p{L}]{1,6}|[^\p{L}]{1,6}$/gu

function strip(text: string): string {
  return text.replace(ADDED, '')
}

/** Digits and signs that people write for letters: `p@ssw0rd`. */
const LETTERS: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
}

function replaceSigns(text: string): string {
  return text.replace(/[013457@$!]/g, sign => LETTERS[sign] ?? sign)
}

/**
 * Whether a password is one that attackers try first, whatever its case, the digits and signs at its ends, and those that
 * stand for letters.
 */
export function isCommonPassword(password: string): boolean {
  known ??= load()
  words ??= loadWords(known)
  const text = password.toLowerCase()
  const variants = [text, strip(text), replaceSigns(text), replaceSigns(strip(text))]
  return known.has(text) || variants.some(variant => known?.has(variant) || words?.has(variant))
}
