import type { TSchema } from 'typebox'
import type { TValidationError } from 'typebox/error'
import { Settings } from 'typebox/system'
import { Value } from 'typebox/value'

/** The members of a JSON Schema that our schemas use. */
export interface JsonSchema {
  readonly type?: string
  readonly format?: string
  readonly title?: string
  readonly const?: unknown
  readonly default?: unknown
  readonly description?: string
  readonly anyOf?: readonly JsonSchema[]
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly pattern?: unknown
}

/** Why a value does not conform to a schema. */
export interface ValueFault {
  readonly kind: 'unknown' | 'missing' | 'invalid'
  /** `keys.0.kid`; empty for the value as a whole. */
  readonly name: string
  /** `Expected string`. It never contains the value. */
  readonly text: string
  /** The schema of the member. */
  readonly schema: JsonSchema
}

// Each choice of a union is an error of its own, before that of the union.
Settings.Set({ maxErrors: 1_000 })

/** The first fault of each member, in the order of the schema. */
export function findFaults(schema: TSchema, value: unknown): readonly ValueFault[] {
  const faults = new Map<string, ValueFault>()
  for (const error of Value.Errors(schema, value))
    for (const fault of describeError(schema, error))
      if (!faults.has(fault.name)) faults.set(fault.name, fault)
  return [...faults.values()]
}

function describeError(whole: TSchema, error: TValidationError): readonly ValueFault[] {
  // The error of the union follows.
  if (error.schemaPath.includes('/anyOf/')) return []
  const path = error.instancePath.split('/').slice(1)
  const schema = findPart(whole, path)
  switch (error.keyword) {
    case 'required':
      return error.params.requiredProperties.map(name => ({
        kind: 'missing',
        name: [...path, name].join('.'),
        text: 'Expected required property',
        schema: schema.properties?.[name] ?? {},
      }))
    case 'additionalProperties':
      return error.params.additionalProperties.map(name => ({
        kind: 'unknown',
        name: [...path, name].join('.'),
        text: 'Unexpected property',
        schema: {},
      }))
    // The error of the object with the additional properties follows.
    case 'boolean':
      return []
    default:
      return [{ kind: 'invalid', name: path.join('.'), text: describeInvalid(error, schema), schema }]
  }
}

/** The schema of a member. Members of a union have none. */
function findPart(whole: JsonSchema, path: readonly string[]): JsonSchema {
  return path.reduce((part: JsonSchema, name) => part.properties?.[name] ?? part.items ?? {}, whole)
}

function describeInvalid(error: TValidationError, { type }: JsonSchema): string {
  switch (error.keyword) {
    case 'type':
      return `Expected ${error.params.type}`
    case 'const':
      return `Expected '${error.params.allowedValue}'`
    case 'anyOf':
      return 'Expected union value'
    case 'pattern':
      return `Expected string to match '${error.params.pattern}'`
    case 'minLength':
      return `Expected string length greater or equal to ${error.params.limit}`
    case 'maxLength':
      return `Expected string length less or equal to ${error.params.limit}`
    case 'minItems':
      return `Expected array length to be greater or equal to ${error.params.limit}`
    case 'maxItems':
      return `Expected array length to be less or equal to ${error.params.limit}`
    case 'minimum':
      return `Expected ${type} to be greater or equal to ${error.params.limit}`
    case 'maximum':
      return `Expected ${type} to be less or equal to ${error.params.limit}`
    default:
      return 'Unexpected value'
  }
}
