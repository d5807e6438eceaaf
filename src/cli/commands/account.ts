import { isId } from '../../fhir/index.ts'
import { type Arguments, type Command, failMisuse, getRequired } from '../command.ts'
import { addAccount, readUsername } from './clinician.ts'

export const accountAdd: Command = {
  usage: `
Usage: npm run -s sallyport -- account add --username <name> [--patient <id>] [--related-person <id>]… [--display-name <text>]

A patient who signs in to apps with access to the own record only, or a related person with access to the records of the
patients they act for. Prompts for the password, or reads it from the first line of standard input (at most 72 bytes):
  echo "$PASSWORD" | npm run -s sallyport -- account add --username alba --patient patient-1

Options:
  --username <name>        login name
  --patient <id>           id of the Patient resource, for example patient-1 or Patient/patient-1
  --related-person <id>    id of a RelatedPerson resource, which names the patient; once for each patient
  --display-name <text>    name shown on pages; by default the username`,
  options: {
    username: { type: 'string' },
    patient: { type: 'string' },
    'related-person': { type: 'string', multiple: true },
    'display-name': { type: 'string' },
  },
  positionals: { min: 0, max: 0 },
  async run(args, io) {
    const username = readUsername(getRequired(args, 'username'))
    const name = args.values['display-name']
    const patients = readIds(args, 'patient', 'Patient')
    const relatedPersons = readIds(args, 'related-person', 'RelatedPerson')
    const [fhirUser] = [
      ...patients.map(id => `Patient/${id}`),
      ...relatedPersons.map(id => `RelatedPerson/${id}`),
    ]
    if (fhirUser === undefined) throw failMisuse('Needs --patient or --related-person')
    const displayName = typeof name === 'string' && name !== '' ? name : username
    return addAccount(io, { kind: 'account', username, displayName, fhirUser, relatedPersons })
  },
}

/** The ids of the resources that an option names, by id or with their type. */
function readIds({ values }: Arguments, option: string, type: string): readonly string[] {
  return [values[option] ?? []].flat().map(value => {
    const id = String(value).replace(`${type}/`, '')
    if (isId(id)) return id
    throw failMisuse(`Cannot use --${option}: expected the id of a ${type}, or ${type}/<id>`)
  })
}
