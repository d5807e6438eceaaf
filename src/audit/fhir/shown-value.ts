import { searchParameter } from '../../fhir/index.ts'

/** Parameters of the result, and those that name no person whatever their value. */
const PLAIN: ReadonlySet<string> = new Set([
  '_at',
  '_count',
  '_elements',
  '_format',
  '_id',
  '_include',
  '_lastUpdated',
  '_pretty',
  '_revinclude',
  '_since',
  '_sort',
  '_summary',
  '_total',
  '_type',
])

/** Search parameters of a harmless type that point to one person all the same. */
const PERSONAL: ReadonlySet<string> = new Set([
  'identifier',
  'email',
  'phone',
  'telecom',
  'birthdate',
  'death-date',
  'deathdate',
  'address-postalcode',
])

const SHOWN_TYPES: ReadonlySet<string> = new Set(['token', 'date', 'number', 'quantity', 'reference'])
const HIDING_MODIFIERS: ReadonlySet<string> = new Set(['text', 'exact', 'contains', 'identifier', 'of-type'])
const SHOWN_TEXT = /^[\w|:/.,+$-]{1,160}$/

/** What stands for a value that may name a person. */
export const HIDDEN = '…'

const known = new Map<string, boolean>()

/** The value of a search parameter as it may be kept and shown: codes, dates, ids; never free text. */
export function shownValue(type: string | undefined, name: string, value: string): string {
  const key = `${type ?? ''} ${name}`
  let shown = known.get(key)
  if (shown === undefined) {
    shown = isShown(type, name)
    // Names are a caller's: a map of all that ever came would grow without end.
    if (known.size < 5000) known.set(key, shown)
  }
  return shown && SHOWN_TEXT.test(value) ? value : HIDDEN
}

function isShown(type: string | undefined, name: string): boolean {
  const [code = '', modifier = ''] = name.split(':')
  if (name.includes('.') || name.startsWith('_has:') || HIDING_MODIFIERS.has(modifier)) return false
  if (PLAIN.has(code)) return true
  if (type === undefined || PERSONAL.has(code)) return false
  const parameter = searchParameter(type, code)
  return parameter !== undefined && SHOWN_TYPES.has(parameter.type)
}
