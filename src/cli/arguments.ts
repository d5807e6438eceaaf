import { type Arguments, misuse } from './command.ts'

/** The text of an option that must be there. */
export function required(args: Arguments, option: string): string {
  const value = optional(args, option)
  if (value === undefined) throw misuse(`Missing --${option}`)
  return value
}

export function optional(args: Arguments, option: string): string | undefined {
  const value = args.values[option]
  if (value === '') throw misuse(`Empty --${option}`)
  return typeof value === 'string' ? value : undefined
}

/** The texts of an option that may be given several times. */
export function several(args: Arguments, option: string): readonly string[] {
  const values = args.values[option]
  return Array.isArray(values) ? values.filter(value => typeof value === 'string') : []
}

export function isSet(args: Arguments, option: string): boolean {
  return args.values[option] === true
}

/** Whom or what a command is about: `--username ada`, or just `ada`. */
export function subject(args: Arguments, option: string): string {
  const [positional] = args.positionals
  if (positional === undefined) return required(args, option)
  if (optional(args, option) !== undefined)
    throw misuse(`Unexpected argument ${positional}: --${option} is given`)
  return positional
}
