"""One file a framework: what it calls the ops of the catalogue, as OPS = {name: function of the inputs by name and the attributes}."""
