import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { Value } from 'typebox/value'
import { type Failed, fail } from '../core/index.ts'
import { findFaults, type JsonSchema, type ValueFault } from './faults.ts'

/** What is wrong with a member of a query or a body. */
interface MemberFault extends Pick<ValueFault, 'kind' | 'name'> {
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
  // `Value.Clone` drops some members, such as `constructor`, instead of letting the schema refuse them.
  return checkMembers(schema, Value.Default(schema, structuredClone(values)))
}

/** Like `readMembers`, without default values. */
export function checkMembers<Schema extends TSchema>(
  schema: Schema,
  values: unknown,
): Static<Schema> | InvalidMembers {
  if (!compile(schema).Check(values)) return fail({ faults: listFaults(schema, values) })
  return values as Static<Schema>
}

const compiled = new WeakMap<TSchema, Validator>()

/** A compiled schema checks twenty times as fast. It is compiled when it is used first. */
function compile(schema: TSchema): Validator {
  const known = compiled.get(schema) ?? Compile(schema)
  compiled.set(schema, known)
  return known
}

/** Faults that a response names. */
const NAMED_FAULTS = 20

function listFaults(schema: TSchema, values: unknown): readonly MemberFault[] {
  return findFaults(schema, values)
    .slice(0, NAMED_FAULTS)
    .map(describeFault)
    .toSorted((a, b) => Number(b.kind === 'unknown') - Number(a.kind === 'unknown'))
}

/** A name that is not a plain one is not repeated. */
function describeFault({ kind, name, text, schema }: ValueFault): MemberFault {
  const expected = describeExpected(schema)
  return {
    kind,
    name: sanitizeName(name),
    text: expected === undefined ? text.charAt(0).toLowerCase() + text.slice(1) : `expected ${expected}`,
    expected,
  }
}

function describeExpected(schema: JsonSchema): string | undefined {
  const { type, minimum, maximum, anyOf, pattern, description = '' } = schema
  if (type === 'integer' && minimum !== undefined && maximum !== undefined)
    return `one whole number from ${minimum} to ${maximum}`
  if (type === 'boolean') return 'true or false'
  if (anyOf?.every(choice => choice.const !== undefined))
    return `one of ${anyOf.map(choice => choice.const).join(', ')}`
  return pattern === undefined || description === ''
    ? undefined
    : `${description.charAt(0).toLowerCase()}${description.slice(1).replace(/\.$/, '')}`
}

function convertTexts({ properties = {} }: JsonSchema, sent: unknown): unknown {
  const entries = Object.entries(sent ?? {}).map(([name, text]) => [
    name,
    Object.hasOwn(properties, name) ? convertText(properties[name], text) : text,
  ])
  return Object.fromEntries(entries)
}

/** Other texts stay as they are, and are refused. */
function convertText(property: JsonSchema | undefined, text: unknown): unknown {
  if (property?.type === 'integer' && typeof text === 'string' && /^\d{1,9}$/.test(text)) return Number(text)
  if (property?.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

function sanitizeName(name: string): string {
  return /^[\w:.-]{0,60}$/.test(name) ? name : '(not a name)'
}
