import type { Static, TSchema } from '@sinclair/typebox'
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value'
import { type Failed, fail, isRecord } from '../core/index.ts'

/** What is wrong with a member of a query or a body. */
interface MemberFault {
  readonly kind: 'unknown' | 'missing' | 'invalid'
  /** `keys.0.kid`; empty for the body as a whole. A name that is not a plain one is not repeated. */
  readonly name: string
  /** The end of a sentence: `expected one of allowed, refused`. */
  readonly text: string
  /** The values that it may have, if the schema says more about them than their type: `one of allowed, refused`. */
  readonly expected: string | undefined
}

/** Members that cannot be used, the unknown ones first: one of them may be a misspelled one that is missing. */
export interface InvalidMembers extends Failed {
  readonly faults: readonly MemberFault[]
}

/** Reads the members of a query, which are texts, or of a body. Unknown members are refused if the schema is closed. */
export function readMembers<Schema extends TSchema>(
  schema: Schema,
  sent: unknown,
  { isText }: { readonly isText: boolean },
): Static<Schema> | InvalidMembers {
  const values = isText ? convertTexts(schema, sent) : (sent ?? {})
  if (isRecord(values) && Object.hasOwn(values, '__proto__')) return fail({ faults: [PROTOTYPE] })
  const complete = Value.Default(schema, Value.Clone(values))
  return Value.Check(schema, complete) ? complete : fail({ faults: listFaults(schema, complete) })
}

/** A member that copies of the values would not have. */
const PROTOTYPE = {
  kind: 'unknown',
  name: '__proto__',
  text: 'unexpected property',
  expected: undefined,
} as const

/** Faults that a response names. */
const NAMED_FAULTS = 20

function listFaults(schema: TSchema, values: unknown): readonly MemberFault[] {
  const faults = new Map<string, MemberFault>()
  for (const error of Value.Errors(schema, values)) {
    // The other errors of a member follow from the first one.
    if (!faults.has(error.path)) faults.set(error.path, describeError(error))
    if (faults.size >= NAMED_FAULTS) break
  }
  return [...faults.values()].toSorted((a, b) => Number(b.kind === 'unknown') - Number(a.kind === 'unknown'))
}

const KINDS = new Map<ValueErrorType, MemberFault['kind']>([
  [ValueErrorType.ObjectAdditionalProperties, 'unknown'],
  [ValueErrorType.ObjectRequiredProperty, 'missing'],
])

function describeError({ path, message, type, schema }: ValueError): MemberFault {
  const expected = describeExpected(schema)
  return {
    kind: KINDS.get(type) ?? 'invalid',
    name: sanitizeName(path.slice(1).replaceAll('/', '.')),
    text:
      expected === undefined ? message.charAt(0).toLowerCase() + message.slice(1) : `expected ${expected}`,
    expected,
  }
}

function describeExpected(schema: TSchema): string | undefined {
  const { type, minimum, maximum, anyOf, pattern, description = '' } = schema
  if (type === 'integer' && minimum !== undefined && maximum !== undefined)
    return `one whole number from ${minimum} to ${maximum}`
  if (type === 'boolean') return 'true or false'
  if (Array.isArray(anyOf) && anyOf.every((choice: TSchema) => choice.const !== undefined))
    return `one of ${anyOf.map((choice: TSchema) => choice.const).join(', ')}`
  return pattern === undefined || description === ''
    ? undefined
    : `${description.charAt(0).toLowerCase()}${description.slice(1).replace(/\.$/, '')}`
}

function convertTexts(schema: TSchema, sent: unknown): unknown {
  const properties: Readonly<Record<string, TSchema>> = schema.properties ?? {}
  const entries = Object.entries(sent ?? {}).map(([name, text]) => [
    name,
    Object.hasOwn(properties, name) ? convertText(properties[name], text) : text,
  ])
  return Object.fromEntries(entries)
}

/** Other texts stay as they are, and are refused. */
function convertText(property: TSchema | undefined, text: unknown): unknown {
  if (property?.type === 'integer' && typeof text === 'string' && /^\d{1,9}$/.test(text)) return Number(text)
  if (property?.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

function sanitizeName(name: string): string {
  return /^[\w:.-]{0,60}$/.test(name) ? name : '(not a name)'
}
