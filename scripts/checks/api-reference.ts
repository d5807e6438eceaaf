/** An OpenAPI document as a page: a heading for each endpoint, with its parameters, body, response and errors. */
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly format?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
}

interface Parameter {
  readonly $ref?: string
  readonly name?: string
  readonly in?: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: Schema
}

interface Content {
  readonly description?: string
  readonly content?: Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>
}

interface Operation {
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}

interface OpenApi {
  readonly info: { readonly title: string; readonly description: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: {
    readonly parameters?: Readonly<Record<string, Parameter>>
    readonly schemas?: Readonly<Record<string, Schema>>
  }
}

export function formatApiReference(given: object, found: string): string {
  const document: OpenApi = JSON.parse(JSON.stringify(given))
  const endpoints = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) =>
      formatOperation(document, method, path, operation),
    ),
  )
  return `# ${document.info.title}

${document.info.description} ${found}

${endpoints.join('\n\n')}
`
}

function formatOperation(document: OpenApi, method: string, path: string, operation: Operation): string {
  const { summary = '', description = '', parameters = [], requestBody, responses } = operation
  const resolved = parameters.map(parameter => resolve(document.components?.parameters, parameter))
  const rows = resolved.map(({ name = '', in: place, required, description: about, schema = {} }) =>
    formatRow(`\`${name}\` (${place})`, required === true, schema, about),
  )
  const good = Object.entries(responses).filter(([status]) => Number(status) < 400)
  const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400)
  return [
    `## ${summary}`,
    `\`${method.toUpperCase()} ${path}\``,
    description,
    table('parameter', rows),
    formatBody(document, 'body', requestBody),
    ...good.map(([status, response]) => formatBody(document, `response ${status}`, response)),
    ...good.map(([, response]) => formatExample(response)),
    errors.length > 0 && `Errors: ${errors.map(([status]) => status).join(', ')}.`,
  ]
    .filter(part => part !== '' && part !== false)
    .join('\n\n')
}

function formatBody(document: OpenApi, what: string, body: Content | undefined): string {
  const schema = Object.values(body?.content ?? {})[0]?.schema
  if (!schema) return ''
  const { items, properties, required = [], ...rest } = resolve(document.components?.schemas, schema)
  const element = items && resolve(document.components?.schemas, items)
  const members = properties ?? element?.properties
  if (!members) return ''
  const names = properties ? required : (element?.required ?? [])
  const rows = Object.entries(members).map(([name, member]) =>
    formatRow(`\`${name}\``, names.includes(name), member),
  )
  return table(`${what}${rest.type === 'array' ? ', of each' : ''}`, rows)
}

function formatExample({ content = {} }: Content): string {
  const example = Object.values(content)[0]?.example
  return example === undefined ? '' : `\`\`\`json\n${JSON.stringify(example, undefined, 2)}\n\`\`\``
}

function table(title: string, rows: readonly string[]): string {
  return rows.length === 0 ? '' : `| ${title} | type | meaning |\n|---|---|---|\n${rows.join('\n')}`
}

function formatRow(name: string, isRequired: boolean, schema: Schema, about = schema.description): string {
  const cells = [`${name}${isRequired ? '' : ', optional'}`, formatType(schema), about ?? '']
  return `| ${cells.map(cell => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`
}

function formatType({ $ref, type, format, const: value, enum: values, anyOf, items }: Schema): string {
  if ($ref !== undefined) return $ref.split('/').at(-1) ?? ''
  if (value !== undefined) return `\`${value}\``
  if (values) return values.map(each => `\`${each}\``).join(', ')
  if (anyOf) return anyOf.map(formatType).join(', ')
  if (items) return `array of ${formatType(items)}`
  return format ?? type ?? 'JSON'
}

function resolve<T extends { readonly $ref?: string }>(
  known: Readonly<Record<string, T>> | undefined,
  value: T,
): T {
  const name = value.$ref?.split('/').at(-1)
  return (name !== undefined && known?.[name]) || value
}
