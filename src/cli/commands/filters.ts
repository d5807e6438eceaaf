import { type Filters, readFilters } from '../../auth/index.ts'
import type { JsonSchema } from '../../endpoint/index.ts'
import { type Arguments, failMisuse, getOptional } from '../command.ts'

/** An option of a usage, with its description. */
export interface OptionText {
  readonly usage: string
  readonly text: string
}

/** Placeholders of values, by the type of the filter. */
const VALUES: Readonly<Record<string, string>> = { boolean: 'true|false', integer: 'number' }

export function listOptions(filters: Filters) {
  return Object.entries(filters).map(
    ([key, { name = key, option = name, schema, about: described, help: about = described }]) => {
      const { type = '', anyOf = [] }: JsonSchema = schema
      const values = anyOf.map(one => String(one.const))
      return {
        param: option,
        option: toOption(option),
        values,
        usage: `--${toOption(option)} <${values.length > 0 ? 'which' : (VALUES[type] ?? 'text')}>`,
        text: values.length === 0 ? about : `${about.replace(/\.$/, '')}: ${values.join(', ')}`,
      }
    },
  )
}

function toOption(name: string): string {
  return name.replaceAll('_', '-')
}

export function formatOptions(options: readonly OptionText[]): string {
  const width = Math.max(...options.map(({ usage }) => usage.length)) + 2
  return options.map(({ usage, text }) => `  ${usage.padEnd(width)}${toPhrase(text)}`).join('\n')
}

function toPhrase(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1).replace(/\.$/, '').replaceAll('`', '')
}

/** Values that options complete to. */
export function listOptionValues(filters: Filters): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    listOptions(filters).flatMap(({ option, values }) => (values.length > 0 ? [[option, values]] : [])),
  )
}

/** The values of the filters. `convert` reads a text that only commands understand. */
export function readOptionFilters(
  filters: Filters,
  args: Arguments,
  convert: (option: string, text: string) => string = (_, text) => text,
) {
  const sent = listOptions(filters).flatMap(({ param, option }) => {
    const text = getOptional(args, option)
    return text === undefined ? [] : [[param, convert(option, text)]]
  })
  const { wanted, faults } = readFilters(filters, Object.fromEntries(sent), 'option')
  if (faults.length === 0) return wanted
  throw failMisuse(faults.map(({ name, fault }) => `Cannot use --${toOption(name)}: ${fault.text}`))
}
