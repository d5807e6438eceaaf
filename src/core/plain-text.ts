/**
 * Characters that show nothing themselves but change how others are shown: C0 and C1 controls, which a terminal obeys;
 * controls of the direction of text (Unicode UAX 9); separators of lines; characters without width. Persian and Indic
 * names need ZWJ and ZWNJ, which are not among them.
 */
const CONTROLS =
  '\\p{Cc}\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb'

const ANY_CONTROL = new RegExp(`[${CONTROLS}]`, 'u')
const ALL_CONTROLS = new RegExp(`[${CONTROLS}]`, 'gu')
/** A tab and an end of line have their place in a text of several lines. */
const CONTROLS_IN_LINES = new RegExp(`(?![\\t\\n\\r])[${CONTROLS}]`, 'gu')
/** On a terminal, a carriage return goes back to the start of the line, and overwrites it. */
const CONTROLS_ON_TERMINAL = new RegExp(`(?![\\t\\n])[${CONTROLS}]`, 'gu')

/** Whether we take in a text as a name: 1 to `longest` characters on one line, without controls. */
export function isPlainLine(text: string, longest: number): boolean {
  return text !== '' && text.length <= longest && !ANY_CONTROL.test(text)
}

/** Completes the sentence of an error: "expected at most 200 characters …". */
export const ON_PLAIN_LINE = 'on one line, without invisible characters that change its display'

/** Whether a username can exist. Identity providers and the database may have names that we would not give. */
export function isUsername(text: string): boolean {
  return isPlainLine(text, 100) && text === text.trim()
}

/** ZWJ and ZWNJ belong to letters of some scripts. */
const NEW_USERNAME = /^[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}._@+-]|\u200c|\u200d){0,99}$/u

/** Completes a sentence: "a username has …". */
export const NEW_USERNAME_RULE =
  'at most 100 letters, digits and the characters . _ - @ +, begins with a letter or a digit, and has no spaces'

/** Whether a new account may have this username: one that can be read out, typed and told from others. */
export function isNewUsername(text: string): boolean {
  return NEW_USERNAME.test(text) && text === text.normalize('NFC')
}

/** The name that others wrote, on one line and without controls. */
export function toPlainLine(text: string): string {
  return ANY_CONTROL.test(text) ? text.replace(/\s+/g, ' ').replace(ALL_CONTROLS, '').trim() : text.trim()
}

/** Removes the controls of a text, except tabs and ends of lines. */
export function removeControls(text: string): string {
  return ANY_CONTROL.test(text) ? text.replace(CONTROLS_IN_LINES, '') : text
}

/** Writes the controls of a line as JSON does: `\u202e`. */
export function escapeLine(text: string): string {
  return text.replace(ALL_CONTROLS, escapeControl)
}

/** Writes the controls of a terminal as JSON does, except tabs and ends of lines. JSON keeps its meaning. */
export function escapeLines(text: string): string {
  return text.replace(CONTROLS_ON_TERMINAL, escapeControl)
}

function escapeControl(control: string): string {
  return `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`
}
