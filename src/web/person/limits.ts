/** Characters of a name that are compared with another name, in a time that grows with the product of their lengths. */
export const COMPARED_CHARACTERS = 100
