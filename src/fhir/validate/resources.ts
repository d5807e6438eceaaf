import { isResourceType } from '../definitions.ts'
import { isRecord } from '../record.ts'
import { checkObject } from './objects.ts'
import { planOf } from './plan.ts'
import { type Container, fault, faultAt, nothingContained, type Walk } from './walk.ts'

type Values = Readonly<Record<string, unknown>>

/** A resource of its own: the root, an entry of a Bundle, a parameter. */
export function checkResource(walk: Walk, value: unknown): void {
  const outer = walk.container
  walk.container = containerOf(value)
  if (checkTyped(walk, value)) checkAllReferred(walk)
  walk.container = outer
}

/** A resource in `contained`: its `#` references are about what its container holds (R4 references.html#contained). */
export function checkContainedResource(walk: Walk, value: unknown): void {
  if (!checkTyped(walk, value)) return
  if (value.id === undefined) faultAt(walk, 'id', 'required', 'A contained resource needs an id')
  if (value.contained !== undefined)
    faultAt(walk, 'contained', 'invariant', 'Contained resources hold none (dom-2)')
  const meta = isRecord(value.meta) ? value.meta : {}
  if (meta.versionId !== undefined || meta.lastUpdated !== undefined) {
    faultAt(walk, 'meta', 'invariant', 'A contained resource has no version of its own (dom-4)')
  }
  if (meta.security !== undefined) {
    faultAt(walk, 'meta', 'invariant', 'A contained resource has no security label of its own (dom-5)')
  }
}

function checkTyped(walk: Walk, value: unknown): value is Values {
  if (!isRecord(value)) {
    fault(walk, 'structure', 'Expected a resource')
    return false
  }
  const type = value.resourceType
  if (typeof type === 'string' && isResourceType(type)) {
    checkObject(walk, value, planOf(type), true)
    return true
  }
  if (type === undefined) faultAt(walk, 'resourceType', 'required', 'A resource needs a resourceType')
  else faultAt(walk, 'resourceType', 'value', 'Expected a resource type of R4')
  return false
}

function containerOf(value: unknown): Container {
  if (!isRecord(value) || !Array.isArray(value.contained)) return nothingContained
  const ids = value.contained.filter(isRecord).map(it => it.id)
  return { ids: new Set(ids.filter(it => typeof it === 'string')), referred: new Set() }
}

/** dom-3 */
function checkAllReferred(walk: Walk): void {
  const { ids, referred } = walk.container
  for (const id of ids) {
    if (!referred.has(id) && !referred.has('')) {
      faultAt(walk, 'contained', 'invariant', 'A contained resource is referred to by nothing (dom-3)')
    }
  }
}
