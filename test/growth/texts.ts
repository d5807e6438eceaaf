/** Texts that are long in one or two dimensions: of any characters, JSON, and narratives. */
import { IS_THOROUGH } from '../support/thorough.ts'
import type { Family } from './measure.ts'

/** Characters and short sequences that a parser may treat differently. */
const ATOMS = [
  'a',
  'A',
  '1',
  '0',
  ' ',
  '\n',
  '"',
  "'",
  '\\',
  '/',
  '.',
  ',',
  ':',
  ';',
  '|',
  '$',
  '&',
  '=',
  '+',
  '-',
  '_',
  '%',
  '%41',
  '#',
  '?',
  '*',
  '@',
  '<',
  '>',
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  '~',
  '~1',
  '..',
  'é',
  '😀',
  '&#60;',
]

/** Each alone, and all pairs: alternating, and one after the other. */
export function growAll<T>(
  items: readonly T[],
  name: (item: T) => string,
  repeat: (size: number, pick: (at: number) => T) => string,
): readonly Family<string>[] {
  const alone = items.map(item => ({ name: name(item), make: (size: number) => repeat(size, () => item) }))
  const pairs = items.flatMap((first, at) =>
    items.slice(at + 1).flatMap(second => [
      {
        name: `${name(first)} and ${name(second)} in turns`,
        make: (size: number) => repeat(size, place => (place % 2 === 0 ? first : second)),
      },
      {
        name: `${name(first)}, then ${name(second)}`,
        make: (size: number) => repeat(size, place => (place < size / 2 ? first : second)),
      },
      {
        name: `${name(second)}, then ${name(first)}`,
        make: (size: number) => repeat(size, place => (place < size / 2 ? second : first)),
      },
    ]),
  )
  return [...alone, ...sample(pairs)]
}

/** The pairs that are tried: a run without `TEST_THOROUGH` takes few. */
export function sample<T>(pairs: readonly T[]): readonly T[] {
  const share = IS_THOROUGH ? 11 : 200
  return pairs.filter((_, at) => at % share === 0)
}

const quote = (text: string) => JSON.stringify(text)

/** Quicker than to join them one by one: in turns, or one after the other. */
function repeatAtoms(size: number, pick: (at: number) => string): string {
  const [first, second, last] = [pick(0), pick(1), pick(size - 1)]
  return first === second ? first.repeat(size / 2) + last.repeat(size / 2) : (first + second).repeat(size / 2)
}

export const TEXTS: readonly Family<string>[] = growAll(ATOMS, quote, repeatAtoms)

/** The families to put into other texts. */
function sampleTexts(): readonly Family<string>[] {
  return IS_THOROUGH
    ? TEXTS.slice(0, ATOMS.length)
    : TEXTS.slice(0, ATOMS.length).filter((_, at) => at % 4 === 0)
}

const STRINGS = ['""', '"a"', '"\\""', '"\\\\"', '", 1.10, "', '"\\u0041"']
const NUMBERS = ['1', '1.10', '-0', '1e5', '12345678901234567890', '0.1']
const OTHERS = ['true', 'null', '[]', '{}', '[1.10]', '{"a":1.10}', ' 1 ']

const JSON_VALUES = [...STRINGS, ...NUMBERS, ...OTHERS]

const toList = (size: number, pick: (at: number) => string) =>
  `[${Array.from({ length: size }, (_, at) => pick(at)).join(',')}]`
const toObject = (size: number, pick: (at: number) => string) =>
  `{${Array.from({ length: size }, (_, at) => `"m${at}":${pick(at)}`).join(',')}}`

/** JSON with many values, long values, or many levels. */
export const JSON_TEXTS: readonly Family<string>[] = [
  ...growAll(JSON_VALUES, value => `items ${value}`, toList),
  ...growAll(JSON_VALUES, value => `members ${value}`, toObject),
  { name: 'members of one name', make: size => `{${Array(size).fill('"a":1.10').join(',')}}` },
  { name: 'digits', make: size => `[${'1'.repeat(size)}]` },
  { name: 'digits after the point', make: size => `[1.${'1'.repeat(size)}]` },
  {
    name: 'digits of many decimals',
    make: size => toList(Math.sqrt(size), () => `1.${'0'.repeat(Math.sqrt(size))}`),
  },
  { name: 'space', make: size => `[1.10,${' '.repeat(size)}1.10]` },
  { name: 'lists in lists', make: size => '['.repeat(size) + ']'.repeat(size) },
  { name: 'objects in objects', make: size => `${'{"a":'.repeat(size)}1.10${'}'.repeat(size)}` },
  { name: 'strings without an end', make: size => `[${Array(size).fill('1.10,"').join('')}` },
  ...sampleTexts().map(({ name, make }) => ({
    name: `a string of ${name}, then decimals`,
    make: (size: number) => `[${JSON.stringify(make(size))},${Array(size).fill('1.10').join(',')}]`,
  })),
]

const XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'

interface Piece {
  readonly name: string
  /** `at` makes names different from each other. */
  readonly make: (at: number) => string
}

const PIECES: readonly Piece[] = [
  ...[
    'x',
    ' ',
    '&amp;',
    '&#60;',
    '&#x3c;',
    ']]',
    '<br/>',
    '<b>x</b>',
    '<!-- x -->',
    "<img src='a'/>",
    '<i',
    '&',
    '<',
  ].map(text => ({ name: text, make: () => text })),
  { name: 'links', make: at => `<a href="http://a.example/${at}" title="&lt;">x</a>` },
]

const ATTRIBUTES: readonly Piece[] = [
  { name: 'xmlns:', make: at => ` xmlns:${at.toString(36)}='x'` },
  { name: 'xmlns: with entities', make: at => ` xmlns:${at.toString(36)}='&lt;'` },
  { name: 'unknown attributes', make: at => ` a${at}='x'` },
  { name: 'one attribute again', make: () => " title='x'" },
  { name: 'spaces', make: () => ' ' },
]

/** Contents and attributes of a `div`, and elements in elements. */
export const NARRATIVES: readonly Family<string>[] = [
  ...growAll(
    PIECES,
    it => it.name,
    (size, pick) =>
      `<div ${XHTML}>${Array.from({ length: size }, (_, at) => pick(at).make(at)).join('')}</div>`,
  ),
  ...growAll(
    ATTRIBUTES,
    it => it.name,
    (size, pick) =>
      `<div ${XHTML}${Array.from({ length: size }, (_, at) => pick(at).make(at)).join('')}>x</div>`,
  ),
  ...sampleTexts().map(({ name, make }) => ({
    name: `an attribute of ${name}`,
    make: (size: number) => `<div ${XHTML} title='${make(size)}'><a href='${make(size)}'>x</a></div>`,
  })),
  {
    name: 'elements in elements',
    make: size => `<div ${XHTML}>${'<b>'.repeat(size)}x${'</b>'.repeat(size)}</div>`,
  },
  { name: 'elements without an end', make: size => `<div ${XHTML}>${'<b>'.repeat(size)}</div>` },
  {
    name: 'attributes of many elements',
    make: size => `<div ${XHTML}>${`<b class='x' title='y'>x</b>`.repeat(size)}</div>`,
  },
]
