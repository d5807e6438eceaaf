import type { Params } from '../interaction.ts'
import type { Resource } from '../r4.ts'

/** How much of each resource is shown (`_summary`, `_elements`). */
export interface Shape {
  readonly summary: 'false' | 'true' | 'text' | 'data' | 'count'
  readonly elements: readonly string[]
}

// R4 search.html#summary: what is shown in part says so.
const SUBSETTED = {
  system: 'http://terminology.hl7.org/CodeSystem/v3-ObservationValue',
  code: 'SUBSETTED',
}
const ALWAYS: ReadonlySet<string> = new Set(['resourceType', 'id', 'meta'])

/** The JSON of a resource as far as it was asked for. With `_summary=true` R4 lets all be shown, and it is. */
export function shaped(content: string, { summary, elements }: Shape): string {
  if (elements.length > 0) return subset(content, key => elements.includes(key))
  if (summary === 'text') return subset(content, key => key === 'text')
  if (summary === 'data') return subset(content, key => key !== 'text')
  return content
}

/** The shape that `_summary` and `_elements` ask for on a read. */
export function shapeOf(params: Params): Shape {
  const elements = params.filter(([name]) => name === '_elements').flatMap(([, value]) => elementsOf(value))
  const summary = params.findLast(([name]) => name === '_summary')?.[1]
  return { elements, summary: summary === 'text' || summary === 'data' ? summary : 'false' }
}

/** `name,Patient.birthDate` names the elements `name` and `birthDate` of any resource. */
export function elementsOf(value: string): readonly string[] {
  return value
    .split(',')
    .map(it => it.trim().replace(/^[A-Z][A-Za-z]*\./, ''))
    .map(it => it.split('.')[0] ?? '')
    .filter(it => it !== '')
}

function subset(content: string, isShown: (key: string) => boolean): string {
  const resource = JSON.parse(content) as Resource
  const shown = Object.entries(resource).filter(
    ([key]) => ALWAYS.has(key) || isShown(key.startsWith('_') ? key.slice(1) : key),
  )
  const tags = Array.isArray(resource.meta?.tag) ? resource.meta.tag : []
  return JSON.stringify({
    ...Object.fromEntries(shown),
    meta: { ...resource.meta, tag: [...tags, SUBSETTED] },
  })
}
