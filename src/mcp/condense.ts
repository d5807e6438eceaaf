import { isRecord, removeControls } from '../core/index.ts'
import { MAX_NOTES, RESULT_CHARACTERS, TEXT_CHARACTERS } from './limits.ts'
import type { FhirJson } from './tool.ts'

/** A result has the resource twice, and once with all quotation marks escaped. */
const RESOURCE_CHARACTERS = RESULT_CHARACTERS / 4

/** A resource without what a model does not need, and notes about what was left out. */
export function condense(resource: FhirJson): {
  readonly resource: FhirJson
  readonly notes: readonly string[]
} {
  const notes: string[] = []
  const condensed = condenseRecord(resource, '', notes)
  const excess = notes.length - MAX_NOTES
  const noted = excess > 0 ? [...notes.slice(0, MAX_NOTES), `${excess} more texts are cut off.`] : notes
  if (JSON.stringify(condensed).length <= RESOURCE_CHARACTERS) return { resource: condensed, notes: noted }
  return leaveOutLargest(condensed, noted)
}

function condenseRecord(record: FhirJson, path: string, notes: string[]): FhirJson {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => {
      // The narrative repeats the data.
      if (name === 'text' && isRecord(value) && value.div !== undefined) return []
      const condensed = condenseValue(value, path === '' ? name : `${path}.${name}`, notes)
      return isRecord(condensed) && Object.keys(condensed).length === 0 ? [] : [[name, condensed]]
    }),
  )
}

function condenseValue(value: unknown, path: string, notes: string[]): unknown {
  if (Array.isArray(value)) return value.map(item => condenseValue(item, path, notes))
  if (isRecord(value)) return condenseRecord(value, path, notes)
  if (typeof value !== 'string') return value
  if (value.length <= TEXT_CHARACTERS) return removeControls(value)
  notes.push(`${path} has ${value.length} characters. The first ${TEXT_CHARACTERS} are shown.`)
  return removeControls(value.slice(0, TEXT_CHARACTERS))
}

/** Leaves out the largest elements until the rest is short enough. */
function leaveOutLargest(
  resource: FhirJson,
  notes: readonly string[],
): { readonly resource: FhirJson; readonly notes: readonly string[] } {
  const sizes = Object.entries(resource).map(([name, value]) => [name, JSON.stringify(value).length] as const)
  let left = sizes.reduce((sum, [, size]) => sum + size, 0)
  const omitted = new Set<string>()
  for (const [name, size] of sizes.toSorted((a, b) => b[1] - a[1])) {
    if (left <= RESOURCE_CHARACTERS) break
    omitted.add(name)
    left -= size
  }
  return {
    resource: Object.fromEntries(Object.entries(resource).filter(([name]) => !omitted.has(name))),
    notes: [...notes, `Left out, because the resource is too long: ${[...omitted].join(', ')}.`],
  }
}
