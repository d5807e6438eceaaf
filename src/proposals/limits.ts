/** Limits of proposals (docs/limits.md). */

/** Open proposals of a grant. */
export const OPEN_OF_GRANT = 20

/** Open proposals of an assistant to one person, by all of its grants. The others keep room. */
export const OPEN_OF_CLIENT = 50

/** Open proposals of all assistants to one person. */
export const OPEN_OF_USER = 100

/** Characters of the resource or patch. */
export const PROPOSAL_CHARACTERS = 60_000

/** Characters of the reason of an assistant, or of a person who rejects. */
export const REASON_CHARACTERS = 1_000

/** Proposals that an assistant sees. */
export const LISTED = 50
