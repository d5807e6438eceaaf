import { escapeLines, isRecord } from '../../../core/index.ts'
import { type ExactResource, formatExact } from '../../../fhir/index.ts'
import { nameCodeSystem } from '../../../web/person/index.ts'

/** An element of a resource that a proposal changes, in words. */
export interface ChangedElement {
  readonly element: string
  /** One text for each item. Empty: the element is absent. */
  readonly before: readonly string[]
  readonly after: readonly string[]
}

/**
 * The elements that differ, with everything in them: a value is said in few words where these say all of it, and otherwise
 * with each of its members, so that nothing is signed unseen.
 */
export function listDifferences(
  before: ExactResource | undefined,
  after: ExactResource | undefined,
): readonly ChangedElement[] {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  return names
    .filter(name => name !== 'resourceType' && name !== 'id')
    .filter(name => formatAny(before?.[name]) !== formatAny(after?.[name]))
    .map(name => ({
      element: sayName(name),
      before: sayItems(before?.[name]),
      after: sayItems(after?.[name]),
    }))
}

/** What a resource is about, such as the name of the condition. */
export function saySubject(resource: ExactResource | undefined): string | undefined {
  const names = ['code', 'vaccineCode', 'medicationCodeableConcept', 'type', 'description', 'title', 'name']
  const found = names.map(name => resource?.[name]).find(it => it !== undefined)
  const text = sayItems(found)[0]
  return text === undefined || text === '' ? undefined : text
}

function formatAny(value: unknown): string {
  return value === undefined ? '' : formatExact(value)
}

function sayItems(value: unknown): readonly string[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value.map(sayValue) : [sayValue(value)]
}

/** `clinicalStatus` is "Clinical status". */
function sayName(name: string): string {
  const words = name.replace(/(?<=[a-z])[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}

function sayValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(sayValue).join(', ')
  if (!isRecord(value)) return sayPlain(value)
  return FORMS.map(form => form(value)).find(text => text !== undefined) ?? sayMembers(value)
}

/** A text with its invisible characters, a number with its digits, or a truth value. */
function sayPlain(value: unknown): string {
  if (typeof value !== 'string') return formatExact(value)
  // A decimal with digits that a number would lose is a marked text.
  const json = formatExact(value)
  return json.startsWith('"') ? escapeLines(value) : json
}

function sayMembers(value: Readonly<Record<string, unknown>>): string {
  return Object.entries(value)
    .map(([name, member]) => `${sayName(name).toLowerCase()}: ${sayValue(member)}`)
    .join('; ')
}

type Form = (value: Readonly<Record<string, unknown>>) => string | undefined

/** Says a value that has no other members. */
function define(members: readonly string[], say: (value: Readonly<Record<string, unknown>>) => string): Form {
  return value => (Object.keys(value).every(name => members.includes(name)) ? say(value) : undefined)
}

const join = (parts: readonly unknown[], separator = ' ') =>
  parts
    .filter(it => it !== undefined)
    .map(sayValue)
    .join(separator)

/** A code with what tells its meaning: the name of its system, or the URL of one that has none. */
function sayCode({ system, code }: Readonly<Record<string, unknown>>): string {
  const [, ofHl7] = /^http:\/\/terminology\.hl7\.org\/CodeSystem\/([\w.-]+)$/.exec(String(system)) ?? []
  const name = nameCodeSystem(system) ?? (ofHl7 === undefined ? undefined : `HL7 ${ofHl7}`)
  return name === undefined ? join([system, code], '|') : join([name, code])
}

/** The few words of data types. */
const FORMS: readonly Form[] = [
  define(['coding', 'text'], ({ text, coding }) =>
    [text === undefined ? [] : sayValue(text), coding === undefined ? [] : `[${sayValue(coding)}]`]
      .flat()
      .join(' '),
  ),
  // The system tells what a code means.
  define(['system', 'code', 'display', 'version', 'userSelected'], value =>
    value.code === undefined ? sayMembers(value) : join([value.display, sayCode(value)]),
  ),
  define(['value', 'unit', 'system', 'code', 'comparator'], value =>
    value.value === undefined
      ? sayMembers(value)
      : `${join([value.comparator], '')}${join([value.value, value.unit])}${
          value.code === undefined || value.code === value.unit ? '' : ` [${sayCode(value)}]`
        }`,
  ),
  define(['reference', 'display', 'type'], value =>
    value.reference === undefined ? sayMembers(value) : join([value.display, value.reference]),
  ),
  define(['start', 'end'], ({ start, end }) => `${join([start]) || '…'} to ${join([end]) || '…'}`),
]
