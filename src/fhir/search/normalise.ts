import { SEARCHED_CHARACTERS } from '../limits.ts'

/** Letters that Unicode does not take apart into a base letter and an accent. */
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
 * A text as a string search compares it: without case and accents, a comma or any white space as one space, so that
 * `Núñez, Ana` is found by `nunez ana` (R4 search.html#string leaves punctuation and spaces to the server).
 */
export function normalise(whole: string): string {
  const text = searchedPart(whole)
  return (plain.test(text) ? text.toLowerCase() : stripAccents(text)).replace(/[\s,]+/g, ' ').trim()
}

/** The part of a text in which searches look, without half of a surrogate pair at its end: SQLite stores only whole ones. */
function searchedPart(text: string): string {
  return text.length > SEARCHED_CHARACTERS
    ? text.slice(0, SEARCHED_CHARACTERS).replace(/[\ud800-\udbff]$/, '')
    : text
}

/** Most texts, and ten times as quick. */
const plain = /^[ -~]*$/

function stripAccents(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[ßæœøłđðþıħ]/g, permission => folded[permission] ?? permission)
    .replace(/\p{M}+/gu, '')
}
