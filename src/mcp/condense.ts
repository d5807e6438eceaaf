import { isRecord, removeControls } from '../core/index.ts'
import { MAX_NOTES, RESULT_CHARACTERS, TEXT_CHARACTERS } from './limits.ts'
import { type FhirJson, failCall, type ToolFault } from './tool.ts'

/** A result has the resource twice, and once with all quotation marks escaped. */
const RESOURCE_CHARACTERS = RESULT_CHARACTERS / 4

/** A resource without what a model does not need, and notes about what was left out and how it is read. */
export interface Condensed {
  readonly resource: FhirJson
  readonly notes: readonly string[]
}

export function condense(resource: FhirJson): Condensed {
  const notes: string[] = []
  return finish(condenseRecord(resource, '', notes), '', notes)
}

/** One element (`component`, `content[3].attachment`), from an item of its list or a character of its text. */
export function condenseElement(resource: FhirJson, path: string, from: number): Condensed | ToolFault {
  const { resourceType, id } = resource
  const value = findAt(resource, path)
  if (value === undefined)
    return failCall(
      `${resourceType}/${id} has no element ${JSON.stringify(path)}. It has ${Object.keys(resource).join(', ')}.`,
    )
  const notes: string[] = []
  if (isRecord(value)) {
    const { resource: condensed, notes: noted } = finish(condenseRecord(value, path, notes), path, notes)
    return { resource: { resourceType, id, [path]: condensed }, notes: noted }
  }
  const shown = Array.isArray(value)
    ? takeItems(value, path, from, notes)
    : typeof value === 'string'
      ? takeText(value, path, from, notes)
      : value
  return { resource: { resourceType, id, [path]: shown }, notes: limitNotes(notes) }
}

function findAt(resource: FhirJson, path: string): unknown {
  const names = path.split(/[.[\]]+/).filter(it => it !== '')
  return names.reduce<unknown>((value, name) => {
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    return isThere ? (value as FhirJson)[name] : undefined
  }, resource)
}

/** As many items of a list as are short enough. */
function takeItems(
  list: readonly unknown[],
  path: string,
  from: number,
  notes: string[],
): readonly unknown[] {
  const items: unknown[] = []
  let left = RESOURCE_CHARACTERS
  for (const [at, item] of list.slice(from).entries()) {
    const own: string[] = []
    const place = `${path}[${from + at}]`
    const condensed = condenseValue(item, place, own)
    left -= JSON.stringify(condensed).length
    const isFirst = at === 0
    if (left < 0 && isFirst) notes.push(`Left out, because it is too long: ${place}. ${advise(place)}`)
    if (left < 0 || (!isFirst && notes.length + own.length > MAX_NOTES / 2)) break
    items.push(condensed)
    notes.push(...own)
  }
  const next = from + Math.max(items.length, 1)
  const more = next < list.length ? ` For more: ${advise(path, next)}` : ''
  if (items.length < list.length)
    notes.push(`${path} has ${list.length} items. ${items.length} are shown, from ${from}.${more}`)
  return items
}

function takeText(text: string, path: string, from: number, notes: string[]): string {
  const end = from + TEXT_CHARACTERS
  const more = text.length > end ? ` For more: ${advise(path, end)}` : ''
  if (from > 0 || more !== '') notes.push(`${path} has ${text.length} characters, shown from ${from}.${more}`)
  return removeControls(text.slice(from, end))
}

function advise(path: string, from?: number): string {
  return `Use element="${path}"${from === undefined ? '' : `, from=${from}`}.`
}

function condenseRecord(record: FhirJson, path: string, notes: string[]): FhirJson {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => {
      // The narrative repeats the data.
      if (name === 'text' && isRecord(value) && value.div !== undefined) return []
      const condensed = condenseValue(value, extend(path, name), notes)
      return isRecord(condensed) && Object.keys(condensed).length === 0 ? [] : [[name, condensed]]
    }),
  )
}

function condenseValue(value: unknown, path: string, notes: string[]): unknown {
  if (Array.isArray(value)) return value.map((item, at) => condenseValue(item, `${path}[${at}]`, notes))
  if (isRecord(value)) return condenseRecord(value, path, notes)
  return typeof value === 'string' ? takeText(value, path, 0, notes) : value
}

function extend(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/** Leaves out the largest elements until the rest is short enough. */
function finish(resource: FhirJson, path: string, notes: readonly string[]): Condensed {
  const limited = limitNotes(notes)
  const sizes = Object.entries(resource).map(([name, value]) => [name, JSON.stringify(value).length] as const)
  let left = sizes.reduce((sum, [, size]) => sum + size, 0)
  const omitted: string[] = []
  for (const [name, size] of sizes.toSorted((a, b) => b[1] - a[1])) {
    if (left <= RESOURCE_CHARACTERS) break
    omitted.push(name)
    left -= size
  }
  const [first] = omitted
  if (first === undefined) return { resource, notes: limited }
  const paths = omitted.map(name => extend(path, name))
  return {
    resource: Object.fromEntries(Object.entries(resource).filter(([name]) => !omitted.includes(name))),
    notes: [
      ...limited,
      `Left out, because the resource is too long: ${paths.join(', ')}. ${advise(extend(path, first))}`,
    ],
  }
}

function limitNotes(notes: readonly string[]): readonly string[] {
  const excess = notes.length - MAX_NOTES
  return excess > 0 ? [...notes.slice(0, MAX_NOTES), `${excess} more notes on cut texts.`] : notes
}
