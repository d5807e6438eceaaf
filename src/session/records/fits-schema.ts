import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { type Decimal as ExactDecimal, plainOf } from '../../fhir/index.ts'

/** A number in exact JSON, which keeps its digits. */
export function Decimal(schema: TSchema = Type.Number()) {
  return Type.Unsafe<ExactDecimal>(schema)
}

/** Whether exact JSON is as a schema describes it. */
export function fitsSchema<Schema extends TSchema>(schema: Schema, value: unknown): value is Static<Schema> {
  return Value.Check(schema, plainOf(value))
}
