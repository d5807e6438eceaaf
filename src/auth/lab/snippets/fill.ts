import { readOwnFile } from '../../../core/index.ts'

/** The values that the code of an app contains. */
export interface SnippetValues {
  readonly clientId: string
  /** Undefined if the app has none, or if it is not known any more: then the code reads it from the environment. */
  readonly secret: string | undefined
  readonly scope: string
  readonly redirectUri: string
  readonly fhirBaseUrl: string
  /** What it reads: `{patient}` stands for the id of the patient. */
  readonly requests: readonly string[]
}

/** The text of an example, whose constants have the values of an app. */
export function fillExample(file: string, values: SnippetValues): string {
  const constants = new Map<string, string | readonly string[] | undefined>([
    ['CLIENT_ID', values.clientId],
    ['CLIENT_SECRET', values.secret],
    ['SCOPE', values.scope],
    ['REDIRECT_URI', values.redirectUri],
    ['FHIR_BASE', values.fhirBaseUrl],
    ['READS', values.requests],
  ])
  const example = readOwnFile(`examples/apps/${file}`)
  return example.replace(/^( *(?:const )?([A-Z_]+) = ).*$/gm, (line, start: string, name: string) => {
    const value = constants.get(name)
    return value === undefined ? line : `${start}${quote(value)}`
  })
}

/** A string, or a list of strings, of JavaScript or Python, which may stand in a script element too. */
function quote(value: string | readonly string[]): string {
  const text =
    typeof value === 'string'
      ? JSON.stringify(value)
      : `[${value.map(one => JSON.stringify(one)).join(', ')}]`
  return text.replaceAll('<', '\\u003c')
}
