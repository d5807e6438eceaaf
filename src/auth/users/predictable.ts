/** Rows of keyboards, the alphabet and the digits. */
const ROWS = [
  'abcdefghijklmnopqrstuvwxyz',
  '01234567890',
  'qwertyuiop',
  'qwertzuiop',
  'azertyuiop',
  'asdfghjkl',
  'qsdfghjklm',
  'zxcvbnm',
  'yxcvbnm',
]

const SEQUENCES = [...ROWS, ...ROWS.map(row => [...row].toReversed().join(''))]

/** Shorter runs are in many words: `hijk` is rare, `rst` is not. */
const RUN = 3

/** Characters that an attacker must guess. */
const UNPREDICTABLE = 4

/** Whether a password is little more than runs of one character, of the alphabet or of a keyboard: `qwertz123`. */
export function isPredictable(password: string): boolean {
  const text = password.toLowerCase()
  return new Set(text).size <= 2 || countOutsideRuns(text) < UNPREDICTABLE
}

function countOutsideRuns(text: string): number {
  let outside = 0
  for (let at = 0; at < text.length; ) {
    const run = measureRun(text, at)
    if (run < RUN) outside += 1
    at += run < RUN ? 1 : run
  }
  return outside
}

/** The number of characters from here that repeat one, or follow each other in a sequence. */
function measureRun(text: string, start: number): number {
  let length = 1
  while (text[start + length] === text[start]) length += 1
  const rows = SEQUENCES.map(row => measureInRow(text, start, row))
  return Math.max(length, ...rows)
}

function measureInRow(text: string, start: number, row: string): number {
  const from = row.indexOf(text[start] ?? '')
  if (from < 0) return 0
  let length = 0
  while (length < row.length - from && text[start + length] === row[from + length]) length += 1
  return length
}

/** Whether a password without the name has too little left: `bobbob12` of `bob`. */
export function isMostly(password: string, name: string): boolean {
  if (name.length < 2) return false
  const rest = password.toLowerCase().replaceAll(name.toLowerCase(), '')
  return rest.length < password.length && rest.length < UNPREDICTABLE
}
