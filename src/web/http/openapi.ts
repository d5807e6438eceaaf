import type { TObject, TSchema } from '@sinclair/typebox'
import { version } from '../ui/index.ts'

/** An OpenAPI document: the parts that all APIs have in common. */
export function createOpenApi<Parts extends object>(
  { title, description, url }: { readonly title: string; readonly description: string; readonly url: string },
  parts: Parts,
) {
  const license = { name: 'Apache-2.0', identifier: 'Apache-2.0' }
  return {
    openapi: '3.1.0',
    info: { title, version, description, license },
    servers: [{ url }],
    ...parts,
  }
}

/** The responses with these errors, by status. Their bodies have the schema of the components with this name. */
export function describeErrors(errors: Readonly<Record<number, string>>, schema: string) {
  const content = describeJson({ $ref: `#/components/schemas/${schema}` })
  return Object.fromEntries(
    Object.entries(errors).map(([status, description]) => [status, { description, content }]),
  )
}

export function describeJson(schema: object, example?: object) {
  return { 'application/json': { schema, ...(example && { example }) } }
}

export function describeQuery(query: TObject) {
  const required: readonly string[] = query.required ?? []
  return Object.entries(query.properties).map(([name, schema]) => {
    const { description, ...rest } = toPlainJson(schema)
    return {
      name,
      in: 'query',
      required: required.includes(name) && schema.default === undefined,
      ...(description !== undefined && { description }),
      schema: rest,
    }
  })
}

/** Without the symbols of TypeBox. */
export function toPlainJson(schema: TSchema): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
}
