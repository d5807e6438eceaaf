import type { Interaction } from '../fhir/index.ts'

/** The path of an interaction below the base. Made from the parsed interaction, never from what was sent. */
export function getPath(interaction: Interaction): string {
  switch (interaction.kind) {
    case 'capabilities':
      return '/metadata'
    case 'smart-configuration':
      return '/.well-known/smart-configuration'
    case 'read':
    case 'update':
    case 'patch':
    case 'delete':
      return `/${interaction.type}/${interaction.id}`
    case 'vread':
      return `/${interaction.type}/${interaction.id}/_history/${interaction.version}`
    case 'history-instance':
      return `/${interaction.type}/${interaction.id}/_history`
    case 'history-type':
      return `/${interaction.type}/_history`
    case 'history-system':
      return '/_history'
    case 'search-type':
    case 'create':
    case 'update-conditional':
    case 'patch-conditional':
    case 'delete-conditional':
      return `/${interaction.type}`
    case 'search-system':
    case 'bundle':
      return ''
    case 'search-compartment':
      return `/${interaction.compartment}/${interaction.id}/${interaction.type}`
    case 'operation': {
      const { type, id, name } = interaction
      return `${type === undefined ? '' : `/${type}`}${id === undefined ? '' : `/${id}`}/${name}`
    }
  }
}
