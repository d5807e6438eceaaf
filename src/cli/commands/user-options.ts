import { listPlainFields, type UserChanges, type UserKind } from '../../auth/index.ts'
import { type Arguments, failMisuse, getOptional, getSeveral, isSet } from '../command.ts'

/** The texts and flags that commands set. */
function listFields(kind: UserKind) {
  return listPlainFields(kind).flatMap(({ option, ...field }) =>
    option === undefined ? [] : [{ ...field, option }],
  )
}

/** The lines of `--help` about them. Only `set` has `--no-…` and `--clear`. */
export function describeOptions(kind: UserKind, when: 'add' | 'set'): string {
  const lines = listFields(kind).flatMap(field => {
    const { option, help = '', helpNot = '' } = field
    if (field.kind === 'text') return [[`--${option} <text>`, help]]
    return [[`--${option}`, help], ...(when === 'set' ? [[`--no-${option}`, helpNot]] : [])]
  })
  const cleared = `remove the value of an option: ${Object.keys(listCleared(kind)).join(', ')}`
  return [...lines, ...(when === 'set' ? [['--clear <option>', cleared]] : [])]
    .map(([option = '', help]) => `  ${option.padEnd(24)} ${help}`)
    .join('\n')
}

/** The texts and flags that options set. */
export function readOptions(args: Arguments, kind: UserKind): UserChanges {
  const values = listFields(kind).map(({ kind: type, property, option }) => {
    if (type === 'text') return [property, getOptional(args, option)]
    return [property, isSet(args, option) ? true : isSet(args, `no-${option}`) ? false : undefined]
  })
  return Object.fromEntries(values.filter(([, value]) => value !== undefined))
}

/** A user has one role, so that no two flags can be set. */
export function refuseTwoFlags(args: Arguments, kind: UserKind): void {
  const given = listFields(kind)
    .flatMap(({ option }) => [option, `no-${option}`])
    .filter(name => isSet(args, name))
  if (given.length > 1) throw failMisuse(`Expected ${given.map(name => `--${name}`).join(' or ')}, not both`)
}

/** What `--clear` removes, by option. */
function listCleared(kind: UserKind): Readonly<Record<string, UserChanges>> {
  const texts = listFields(kind).filter(field => field.kind === 'text' && !field.isRequired)
  return {
    ...Object.fromEntries(texts.map(({ option, property }) => [option, { [property]: '' }])),
    ...(kind === 'clinician'
      ? { 'fhir-user': { records: false } }
      : { 'related-person': { relatedPersons: [] } }),
  }
}

export function readCleared(args: Arguments, kind: UserKind): UserChanges {
  const cleared = listCleared(kind)
  const changes = getSeveral(args, 'clear').map(option => {
    const [, found] = Object.entries(cleared).find(([name]) => name === option) ?? []
    if (found) return found
    throw failMisuse(`Cannot clear ${option}: expected ${Object.keys(cleared).join(', ')}`)
  })
  return Object.assign({}, ...changes)
}
