import { type Static, Type } from '@sinclair/typebox'
import { Decimal } from './fits-schema.ts'

/** A searchset as it comes from the FHIR server: what we read of it. */
export const SearchBundle = Type.Object({
  resourceType: Type.Literal('Bundle'),
  total: Type.Optional(Decimal(Type.Integer({ minimum: 0 }))),
  link: Type.Optional(Type.Array(Type.Object({ relation: Type.String(), url: Type.String() }))),
  entry: Type.Optional(
    Type.Array(
      Type.Object({
        resource: Type.Optional(Type.Object({ resourceType: Type.String() })),
        search: Type.Optional(Type.Object({ mode: Type.Optional(Type.String()) })),
      }),
    ),
  ),
})

export type SearchBundle = Static<typeof SearchBundle>
