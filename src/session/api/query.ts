import type { Static, TObject, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { fail, type Result, succeed } from '../failure.ts'

/** Reads a query by its schema: defaults filled in; unknown names, repeated names and other values are refused. */
export function readQuery<Query extends TObject>(
  schema: Query,
  sent: Readonly<Record<string, unknown>>,
): Result<Static<Query>> {
  const values: Record<string, unknown> = {}
  for (const [name, text] of Object.entries(sent)) {
    const property: TSchema | undefined = Object.hasOwn(schema.properties, name)
      ? schema.properties[name]
      : undefined
    if (property === undefined)
      return fail({ kind: 'bad-parameter', name: shown(name), expected: 'no such parameter' })
    values[name] = numberOr(property, text)
    if (!Value.Check(property, values[name]))
      return fail({ kind: 'bad-parameter', name, expected: expectedOf(property) })
  }
  const complete: unknown = Value.Default(schema, values)
  return succeed(Value.Parse(schema, complete))
}

/** Digits become a number; whatever else was sent stays as it is, and fails its check. */
function numberOr(property: TSchema, sent: unknown): unknown {
  return property.type === 'integer' && typeof sent === 'string' && /^\d{1,9}$/.test(sent)
    ? Number(sent)
    : sent
}

function expectedOf(property: TSchema): string {
  if (property.type === 'integer') return `one whole number from ${property.minimum} to ${property.maximum}`
  if (Array.isArray(property.anyOf))
    return `one of ${property.anyOf.map((one: TSchema) => one.const).join(', ')}`
  return property.description === undefined ? 'one value' : phraseOf(property.description)
}

/** A description, which is a sentence, inside of another sentence. */
function phraseOf(description: string): string {
  return `${description.charAt(0).toLowerCase()}${description.slice(1).replace(/\.$/, '')}`
}

/** A name that was sent is shown only as far as it is a name. */
function shown(name: string): string {
  return /^[\w:.-]{1,40}$/.test(name) ? name : '(not a name)'
}
