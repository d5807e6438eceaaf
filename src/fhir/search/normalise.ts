import { SEARCHED_CHARACTERS } from '../limits.ts'

/** Letters that Unicode does not decompose into a base letter and an accent. */
const folded: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ı: 'i',
  ħ: 'h',
}

/**
 * Normalises a text for string searches: without case and accents, commas and white space as one space, so that
 * `nunez ana` finds `Núñez, Ana` (R4 search.html#string leaves punctuation and spaces to the server).
 */
export function normalise(whole: string): string {
  const text = cutToSearched(whole)
  return (plain.test(text) ? text.toLowerCase() : stripAccents(text)).replace(/[\s,]+/g, ' ').trim()
}

/** The searched part of a text, without half of a surrogate pair at its end: SQLite stores only whole ones. */
function cutToSearched(text: string): string {
  return text.length > SEARCHED_CHARACTERS
    ? text.slice(0, SEARCHED_CHARACTERS).replace(/[\ud800-\udbff]$/, '')
    : text
}

/** In lower case as SQLite's `lower` writes it. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, letters => letters.toLowerCase())
}

/** Most texts; ten times as fast. */
const plain = /^[ -~]*$/

function stripAccents(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[ßæœøłđðþıħ]/g, letter => folded[letter] ?? letter)
    .replace(/\p{M}+/gu, '')
}
