import { type EffectiveSetting, listEffectiveSettings, readConfiguration } from '../../config/index.ts'
import { HOW } from '../../core/index.ts'
import { type Command, isSet, printJson } from '../command.ts'

/** Prints in the format of the settings file, so that lines can be copied. */
const settings: Command = {
  usage: `
Usage: ${HOW} settings [--json]

Reads the environment and sallyport.yaml (or the file named in SMART_CONFIG), as start does. Prints each setting with its
value, its environment variable and the source of the value. If the servers would refuse to start with these settings,
prints the reasons on standard error.

Options:
  --json  print JSON: an array of objects with name, env, value and source`,
  async run(args, io) {
    const configuration = readConfiguration(io.env, io.cwd)
    const effective = listEffectiveSettings(configuration)
    if (isSet(args, 'json')) printJson(io, effective)
    else for (const setting of effective) io.stdout.write(`${formatSetting(setting)}\n`)
    for (const warning of configuration.warnings) io.stderr.write(`${warning}\n`)
    for (const problem of configuration.problems)
      io.stderr.write(`Cannot start with these settings: ${problem}\n`)
    return 0
  },
}

function formatSetting({ name, env, value, source }: EffectiveSetting): string {
  const written = value === undefined ? `# ${name}:` : `${name}: ${formatScalar(value)}`
  const origin = { environment: env, file: `file, or ${env}`, default: `default, or ${env}` } as const
  return `${written.padEnd(64)}  # ${value === undefined ? `none, or ${env}` : origin[source]}`
}

function formatScalar(value: string): string {
  return /^[\w/.][\w./:,@+= -]*$/.test(value) && !value.includes(': ') ? value : JSON.stringify(value)
}

export const commands = { settings }
