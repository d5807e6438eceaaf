import { type TSchema, Type } from '@sinclair/typebox'
import { LISTED_RESOURCES } from '../limits.ts'
import type { Found } from '../records/search-fhir.ts'

/** The Bundle of a response (API-9): always with `total` and `entry`, and without links, which need the token. */
export function BundleOf<Resource extends TSchema>(resource: Resource) {
  return Type.Object({
    resourceType: Type.Literal('Bundle'),
    type: Type.Literal('searchset'),
    total: Type.Integer({ minimum: 0, description: 'How many match; entry may hold fewer.' }),
    entry: Type.Array(Type.Object({ resource, search: Type.Object({ mode: Type.Literal('match') }) })),
  })
}

export function createBundle<T>({ resources, total }: Found<T>) {
  return {
    resourceType: 'Bundle' as const,
    type: 'searchset' as const,
    total,
    entry: resources.map(resource => ({ resource, search: { mode: 'match' as const } })),
  }
}

/** `_count` of `/api/conditions` and `/api/vitals` (API-5, API-8). */
export const Count = Type.Integer({
  minimum: 1,
  maximum: LISTED_RESOURCES,
  default: 50,
  description: 'How many results at most.',
})
