import { failMisuse } from '../command.ts'

/** The three servers (SERVICE-1). */
export const serverNames = ['auth', 'fhir', 'app'] as const
export type ServerName = (typeof serverNames)[number]

/** Which servers were asked for: all of them unless some are named. */
export function chooseServers(names: readonly string[]): readonly ServerName[] {
  const unknown = names.find(name => !serverNames.some(known => known === name))
  if (unknown !== undefined) throw failMisuse(`Unknown server ${unknown}: expected ${serverNames.join(', ')}`)
  return names.length === 0 ? serverNames : serverNames.filter(name => names.includes(name))
}
