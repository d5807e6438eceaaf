import { type Arguments, failMisuse } from './command.ts'

/** The text of an option that must be there. */
export function getRequired(args: Arguments, option: string): string {
  const value = getOptional(args, option)
  if (value === undefined) throw failMisuse(`Missing --${option}`)
  return value
}

export function getOptional(args: Arguments, option: string): string | undefined {
  const value = args.values[option]
  if (value === '') throw failMisuse(`Empty --${option}`)
  return typeof value === 'string' ? value : undefined
}

/** The texts of an option that may be given several times. */
export function getSeveral(args: Arguments, option: string): readonly string[] {
  const values = args.values[option]
  return Array.isArray(values) ? values.filter(value => typeof value === 'string') : []
}

export function isSet(args: Arguments, option: string): boolean {
  return args.values[option] === true
}

/** Whom or what a command is about: `--username ada`, or just `ada`. */
export function getSubject(args: Arguments, option: string): string {
  const [positional] = args.positionals
  if (positional === undefined) return getRequired(args, option)
  if (getOptional(args, option) !== undefined)
    throw failMisuse(`Unexpected argument ${positional}: --${option} is given`)
  return positional
}
