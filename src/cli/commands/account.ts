import { isId } from '../../fhir/index.ts'
import { type Command, failMisuse, getRequired } from '../command.ts'
import { addAccount, readUsername } from './clinician.ts'

export const accountAdd: Command = {
  usage: `
Usage: npm run -s sallyport -- account add --username <name> --patient <id> [--display-name <text>]

A patient who signs in to apps, with access to the own record only. Prompts for the password, or reads it from the first
line of standard input (at most 72 bytes):
  echo "$PASSWORD" | npm run -s sallyport -- account add --username alba --patient patient-1

Options:
  --username <name>        login name
  --patient <id>           id of the Patient resource, for example patient-1 or Patient/patient-1
  --display-name <text>    name shown on pages; by default the username`,
  options: {
    username: { type: 'string' },
    patient: { type: 'string' },
    'display-name': { type: 'string' },
  },
  positionals: { min: 0, max: 0 },
  async run(args, io) {
    const username = readUsername(getRequired(args, 'username'))
    const name = args.values['display-name']
    const row = {
      username,
      display_name: typeof name === 'string' && name !== '' ? name : username,
      fhir_user_id: `Patient/${readPatientId(getRequired(args, 'patient'))}`,
    }
    return addAccount(io, 'account', row)
  },
}

function readPatientId(text: string): string {
  const id = text.replace(/^Patient\//, '')
  if (isId(id)) return id
  throw failMisuse('Cannot use --patient: expected the id of a Patient, or Patient/<id>')
}
